package app

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
)

// rack is a vendor's own configuration kind.
type rack struct {
	Row string `json:"row"`
}

// vendor is a kubelet with a flag, a kind, a gate and a hook of its own.
func vendor(prepared chan<- string) []Option {
	var site string
	return []Option{
		Named("rackd", "v9.8.7"),
		AddFlags(func(fs *pflag.FlagSet) { fs.StringVar(&site, "site_name", "", "where the rack stands") }),
		AddKind(config.Register[rack]("vendor.example/v1", "Rack")),
		AddGate(config.Gate{Name: "VendorTurbo", Stage: config.Alpha}),
		Agent(func(loaded *config.Loaded) ([]nodefx.Option, error) {
			r, ok := config.Get[rack](loaded)
			if !ok {
				return nil, errors.New("no Rack in the configuration")
			}
			return []nodefx.Option{nodefx.AddHook("rack", rackHook{where: site + "/" + r.Row, prepared: prepared})}, nil
		}),
	}
}

type rackHook struct {
	node.NoHook
	where    string
	prepared chan<- string
}

func (h rackHook) Prepare(_ context.Context, pod *corev1.Pod) error {
	select {
	case h.prepared <- h.where + " " + pod.Name:
	default: // called again for the same pod
	}
	return nil
}

func TestVendor(t *testing.T) {
	b := newBed(t)
	b.manifest(t)
	prepared := make(chan string, 1)
	args := append(b.flags(t, "featureGates: {VendorTurbo: true}\nstaticPodURLHeader: {Authorization: [secret]}\nimageServiceEndpoint: unix:///elsewhere\n---\napiVersion: vendor.example/v1\nkind: Rack\nrow: b\n"),
		"--site-name=north", "--image-service-endpoint="+b.endpoint, "--v=2")
	logs, stop := start(t, args, vendor(prepared)...)
	if got := <-prepared; got != "north/b web-node1" {
		t.Errorf("the vendor's hook got %q", got)
	}
	b.awaitRunning(t) // so the flag's image endpoint outranked the file's

	var flagz map[string]string
	b.get(t, "/flagz", &flagz)
	if flagz["site-name"] != "north" || flagz["v"] != "2" || flagz["config-strict"] != "false" {
		t.Errorf("flagz: %v", flagz)
	}
	var configz struct {
		Kubeletconfig config.KubeletConfiguration
		Vendor        map[string]rack
		Featuregates  map[string]bool
	}
	b.get(t, "/configz", &configz)
	kc := configz.Kubeletconfig
	if kc.ContainerRuntimeEndpoint != b.endpoint || kc.ImageServiceEndpoint != b.endpoint || kc.Logging.Verbosity != 2 || *kc.HealthzPort != 0 {
		t.Errorf("configz: the configuration is not that of file and flags: %+v", kc)
	}
	if got := kc.StaticPodURLHeader["Authorization"]; len(got) != 1 || got[0] != "<masked>" {
		t.Errorf("configz tells a secret: %v", got)
	}
	if configz.Vendor["app.rack"].Row != "b" || !configz.Featuregates["VendorTurbo"] || !configz.Featuregates["ContainerRestartRules"] {
		t.Errorf("configz: vendor %v, gates %v", configz.Vendor, configz.Featuregates)
	}
	var groups nodefx.GroupNames
	b.get(t, "/debug/hooks", &groups)
	if got := strings.Join(groups.Hooks, " "); !strings.Contains(got, "rack") {
		t.Errorf("hooks: %s", got)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(logs.String(), `"Starting kubelet" version="v9.8.7"`) {
		t.Error("the log does not tell the vendor's version")
	}
	b.awaitRunning(t) // containers run on
}

func TestVendorFailures(t *testing.T) {
	b := newBed(t)
	code, _, stderr := once(t, b.flags(t, ""), vendor(nil)...)
	if code != 1 || !strings.Contains(stderr, "failed to run Kubelet: no Rack in the configuration") {
		t.Errorf("a vendor's error: exit code %d\n%s", code, stderr)
	}
	stock := AddGate(config.Gate{Name: "EventedPLEG"})
	if code, _, stderr := once(t, nil, stock); code != 1 || !strings.Contains(stderr, "feature gate EventedPLEG exists already") {
		t.Errorf("a gate of a stock name: exit code %d\n%s", code, stderr)
	}
}

func TestHelpAndVersion(t *testing.T) {
	code, help, _ := once(t, []string{"--help"}, vendor(nil)...)
	if code != 0 {
		t.Errorf("--help: exit code %d", code)
	}
	for _, want := range []string{"  rackd [flags]", "\nConfiguration:\n", "\nNode:\n", "\nStatic pods:\n", "\nRuntime, images and logs:\n", "\nProcess, logs and help:\n", "\nVendor:\n", "--site-name string", "VendorTurbo=true|false (ALPHA - default=false)"} {
		if !strings.Contains(help, want) {
			t.Errorf("--help without %q:\n%s", want, help)
		}
	}
	if _, out, _ := once(t, []string{"--version"}, vendor(nil)...); out != "Kubernetes v9.8.7\n" {
		t.Errorf("--version: %q", out)
	}
	_, out, _ := once(t, []string{"--version"})
	wantLine(t, out, `^Kubernetes v1\.37\.\d+\+nodekit\.[0-9A-Za-z.-]+\n$`)
}

// Flags are spelled with - or _; deprecated ones say so, once.
func TestDeprecatedFlags(t *testing.T) {
	b := newBed(t)
	args := append(b.flags(t, "maxPods: -1\n"), "--image_service_endpoint="+b.endpoint)
	_, _, stderr := once(t, args)
	const rest = " has been deprecated, This parameter should be set via the config file specified by the Kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information.\n"
	for _, flag := range []string{"container-runtime-endpoint", "image-service-endpoint", "pod-manifest-path"} {
		if strings.Count(stderr, "Flag --"+flag+rest) != 1 {
			t.Errorf("--%s: want the notice once:\n%s", flag, stderr)
		}
	}
	if strings.Contains(stderr, "Flag --feature-gates") {
		t.Error("a flag that was not used has a notice")
	}
}

// A relative --pod-manifest-path starts at the working directory.
func TestRelativeManifests(t *testing.T) {
	b := newBed(t)
	b.manifest(t)
	t.Chdir(b.dir)
	_, stop := start(t, append(b.flags(t, ""), "--pod-manifest-path=manifests", "--root-dir=root"))
	b.awaitRunning(t)
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// Drop-ins lie over the file; problems of manifests are events; /healthz answers.
func TestRunningAgent(t *testing.T) {
	b := newBed(t)
	if err := os.WriteFile(filepath.Join(b.dir, "manifests", "bad.yaml"), []byte("kind: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	drop := filepath.Join(b.dir, "conf.d")
	if err := os.Mkdir(drop, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nhealthzPort: " + port + "\n"
	if err := os.WriteFile(filepath.Join(drop, "10-port.conf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stop := start(t, append(b.flags(t, ""), "--config-dir="+drop))
	await(t, "/healthz", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	await(t, "event of the bad manifest", func() bool {
		var events []struct{ Type, Reason, Location string }
		b.get(t, "/debug/events", &events)
		return len(events) == 1 && events[0].Type == "Warning" && events[0].Reason == "InvalidManifest" && strings.HasSuffix(events[0].Location, "bad.yaml")
	})
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
