package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"nodekit.dev/internal/manifests"
)

// decodeObjects reads the ConfigMaps and Secrets of one file: a document, or
// several, or lists. Fields that the API does not know are errors: a Secret
// with a slip in it is worse than the old one.
func decodeObjects(data []byte) (contents, error) {
	var found contents
	documents := [][]byte{data}
	if !json.Valid(data) {
		var err error
		if documents, err = manifests.Split(data); err != nil {
			return found, err
		}
	}
	for _, document := range documents {
		doc, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return found, err
		}
		if bytes.Equal(doc, []byte("null")) {
			continue
		}
		if err := found.add(doc); err != nil {
			return found, err
		}
	}
	return found, nil
}

// add takes in one document.
func (c *contents) add(doc []byte) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, &head); err != nil {
		return fmt.Errorf("not an object: %w", err)
	}
	if head.APIVersion != "v1" {
		return fmt.Errorf("apiVersion %q, kind %q: want v1, ConfigMap or Secret", head.APIVersion, head.Kind)
	}
	switch head.Kind {
	case "List", "ConfigMapList", "SecretList":
		for _, item := range head.Items {
			if err := c.add(item); err != nil {
				return err
			}
		}
		return nil
	case "ConfigMap":
		m := &corev1.ConfigMap{}
		if err := decodeStrict(doc, m); err != nil {
			return err
		}
		inDefault(m)
		c.configMaps = append(c.configMaps, m)
		return named(KindConfigMap, m, CheckConfigMap(m))
	case "Secret":
		s := &corev1.Secret{}
		if err := decodeStrict(doc, s); err != nil {
			return err
		}
		inDefault(s)
		mergeStringData(s)
		c.secrets = append(c.secrets, s)
		return named(KindSecret, s, CheckSecret(s))
	}
	return fmt.Errorf("kind %q: want ConfigMap or Secret", head.Kind)
}

func decodeStrict(doc []byte, into any) error {
	unknown, err := kjson.UnmarshalStrict(doc, into)
	return errors.Join(append(unknown, err)...)
}

// inDefault puts an object without a namespace where such pods are.
func inDefault(o metav1.Object) {
	if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
}

// mergeStringData does what the API server does on write.
func mergeStringData(s *corev1.Secret) {
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

func named(kind string, o metav1.Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", kind, o.GetNamespace()+"/"+o.GetName(), err)
}
