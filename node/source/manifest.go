package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"nodekit.dev/internal/manifests"
)

// MaxManifest is how large a manifest, or the answer of a URL, may be.
const MaxManifest = manifests.MaxSize

// decoded is one pod as its manifest says, and what was ignored in it. The
// names are also known where the rest can not be read, if they can.
type decoded struct {
	pod             *corev1.Pod
	namespace, name string
	warnings        []string
}

// decodePod reads a manifest that holds one pod.
func decodePod(data []byte) (decoded, error) {
	doc, warnings, err := oneDocument(data)
	if err != nil {
		return decoded{}, err
	}
	if err := checkKind(doc, "Pod"); err != nil {
		return decoded{}, err
	}
	d, err := podFromJSON(doc)
	d.warnings = append(warnings, d.warnings...)
	return d, err
}

// decodePods reads one pod or a list of pods. An item that can not be read is
// nil among the pods and has its error at the same place.
func decodePods(data []byte) (pods []decoded, errs []error, err error) {
	doc, warnings, err := oneDocument(data)
	if err != nil {
		return nil, nil, err
	}
	if err := checkKind(doc, "Pod", "PodList"); err != nil {
		return nil, nil, err
	}
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(doc, &list); err != nil {
		return nil, nil, err
	}
	if list.Kind == "Pod" {
		list.Items = []json.RawMessage{doc}
	}
	for _, raw := range list.Items {
		d, err := podFromJSON(raw)
		d.warnings = append(d.warnings, warnings...)
		pods, errs = append(pods, d), append(errs, err)
	}
	return pods, errs, nil
}

func podFromJSON(raw []byte) (decoded, error) {
	pod := &corev1.Pod{}
	ignored, err := kjson.UnmarshalStrict(raw, pod)
	if err != nil {
		namespace, name := namesIn(raw)
		return decoded{namespace: namespace, name: name}, fmt.Errorf("not a pod: %w", err)
	}
	d := decoded{pod: pod, namespace: pod.Namespace, name: pod.Name}
	for _, w := range ignored {
		d.warnings = append(d.warnings, w.Error())
	}
	return d, nil
}

// namesIn reads as much of a pod as says which one it is.
func namesIn(raw []byte) (namespace, name string) {
	var head struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil {
		return "", ""
	}
	return head.Metadata.Namespace, head.Metadata.Name
}

func checkKind(doc []byte, kinds ...string) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, &head); err != nil {
		return fmt.Errorf("not an object: %w", err)
	}
	for _, kind := range kinds {
		if head.APIVersion == "v1" && head.Kind == kind {
			return nil
		}
	}
	return fmt.Errorf("apiVersion %q, kind %q: want v1, %s", head.APIVersion, head.Kind, strings.Join(kinds, " or "))
}

var errEmpty = errors.New("empty")

// oneDocument returns the one YAML or JSON document as JSON.
func oneDocument(data []byte) (doc []byte, warnings []string, err error) {
	if len(data) > MaxManifest {
		return nil, nil, manifests.ErrTooLarge
	}
	if json.Valid(data) {
		return data, nil, nil
	}
	documents, err := manifests.Split(data)
	if err != nil {
		return nil, nil, err
	}
	var found [][]byte
	for _, part := range documents {
		doc, err := yaml.YAMLToJSONStrict(part)
		if err != nil {
			// A doubled key, which the API takes the last of, or no YAML at all.
			lenient, lerr := yaml.YAMLToJSON(part)
			if lerr != nil {
				return nil, nil, lerr
			}
			doc, warnings = lenient, append(warnings, err.Error())
		}
		if !bytes.Equal(doc, []byte("null")) {
			found = append(found, doc)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil, errEmpty
	case 1:
		return found[0], warnings, nil
	}
	return nil, nil, fmt.Errorf("holds %d documents: put each pod into a file of its own", len(found))
}
