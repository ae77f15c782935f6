package server

import (
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// zpageGroup is the API group of the structured forms of /statusz and /flagz.
const zpageGroup = "config.k8s.io"

const zpageHeader = `
%s %s
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.
`

// Status is what /statusz tells.
type Status struct {
	Component string // "kubelet"
	Version   string
	GoVersion string
	// Emulation is the Kubernetes version whose behaviour this is, "1.37".
	Emulation string
	Started   time.Time
	// Paths are those worth looking at.
	Paths []string
}

// statusz and flagz are the structured forms.
type statusz struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	StartTime         metav1.Time `json:"startTime"`
	UptimeSeconds     int64       `json:"uptimeSeconds"`
	GoVersion         string      `json:"goVersion"`
	BinaryVersion     string      `json:"binaryVersion"`
	EmulationVersion  string      `json:"emulationVersion,omitempty"`
	Paths             []string    `json:"paths"`
}

type flagz struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Flags             map[string]string `json:"flags,omitempty"`
}

// Statusz is /statusz: text, or the structured form where it is asked for.
func Statusz(s Status) Route {
	return Route{Pattern: "GET /statusz", Handler: zpage{
		kind: "Statusz",
		text: func() string { return s.text(time.Now()) },
		object: func(meta metav1.TypeMeta) any {
			return statusz{
				TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: s.Component},
				StartTime: metav1.NewTime(s.Started), UptimeSeconds: int64(time.Since(s.Started).Seconds()),
				GoVersion: s.GoVersion, BinaryVersion: s.Version, EmulationVersion: s.Emulation, Paths: s.Paths,
			}
		},
	}}
}

func (s Status) text(now time.Time) string {
	up := now.Sub(s.Started)
	text := fmt.Sprintf(zpageHeader, s.Component, "statusz") + fmt.Sprintf("\nStarted: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\n",
		s.Started.Format(time.UnixDate), int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60, s.GoVersion, s.Version)
	if s.Emulation != "" {
		text += "Emulation version: " + s.Emulation + "\n"
	}
	if len(s.Paths) > 0 {
		text += "Paths: " + strings.Join(s.Paths, " ") + "\n"
	}
	return text
}

// Flagz is /flagz: the flags of the component with their values, of which the
// caller has hidden what is secret.
func Flagz(component string, flags func() map[string]string) Route {
	return Route{Pattern: "GET /flagz", Handler: zpage{
		kind: "Flagz",
		text: func() string {
			now := flags()
			text := fmt.Sprintf(zpageHeader, component, "flagz")
			for _, name := range slices.Sorted(maps.Keys(now)) {
				text += name + "=" + now[name] + "\n"
			}
			return text
		},
		object: func(meta metav1.TypeMeta) any {
			return flagz{TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: component}, Flags: flags()}
		},
	}}
}

// Configz is /configz: what the value is now, as JSON.
func Configz(value func() any) Route {
	return Route{Pattern: "GET /configz", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, value())
	})}
}

// zpage answers in the form that the client accepts: text where it does not
// care, JSON or YAML where it names the kind.
type zpage struct {
	kind   string
	text   func() string
	object func(metav1.TypeMeta) any
}

func (z zpage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	form, version, found := z.negotiate(r.Header.Values("Accept"))
	if !found {
		http.Error(w, fmt.Sprintf("only the following media types are accepted: text/plain, and application/json or application/yaml with v=v1beta1;g=%s;as=%s",
			zpageGroup, z.kind), http.StatusNotAcceptable)
		return
	}
	if form == "text/plain" {
		WriteText(w, z.text())
		return
	}
	if version == "v1alpha1" {
		w.Header().Set("Warning", fmt.Sprintf(`299 - "This version of the %s endpoint is deprecated. Please use a newer version."`, strings.ToLower(z.kind)))
	}
	object := z.object(metav1.TypeMeta{Kind: z.kind, APIVersion: zpageGroup + "/" + version})
	if form == "application/json" {
		WriteJSON(w, object)
		return
	}
	data, err := yaml.Marshal(object)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", form)
	_, _ = w.Write(data) // the client is gone: nobody to tell
}

// negotiate takes the first form of the client's list that there is.
func (z zpage) negotiate(accept []string) (form, version string, found bool) {
	all := strings.Join(accept, ",")
	if strings.TrimSpace(all) == "" {
		return "text/plain", "", true
	}
	for clause := range strings.SplitSeq(all, ",") {
		form, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		switch form {
		case "*/*", "text/*", "text/plain":
			return "text/plain", "", true
		case "application/json", "application/yaml":
			known := params["v"] == "v1beta1" || params["v"] == "v1alpha1"
			if known && params["g"] == zpageGroup && params["as"] == z.kind {
				return form, params["v"], true
			}
		}
	}
	return "", "", false
}
