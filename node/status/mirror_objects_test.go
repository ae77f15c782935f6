package status

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestMirrorWithoutLocalObjects: what the API server would refuse in a mirror is
// not in it, all else is, and the static pod stays as it is.
func TestMirrorWithoutLocalObjects(t *testing.T) {
	spec := func(text string) (out corev1.PodSpec) {
		if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const with = `
imagePullSecrets: [{name: s}]
initContainers:
- {name: i, envFrom: [{secretRef: {name: s}}]}
containers:
- name: c
  env: [{name: A, value: b}, {name: B, valueFrom: {configMapKeyRef: {name: m, key: k}}}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  volumeMounts: [{name: v, mountPath: /v}]
volumes:
- {name: v, configMap: {name: m}}
- {name: w, secret: {secretName: s}}
- {name: p, projected: {sources: [{downwardAPI: {}}, {secret: {name: s}}]}}
- {name: d, projected: {sources: [{downwardAPI: {}}]}}
- {name: h, hostPath: {path: /h}}
`
	const without = `
initContainers:
- {name: i}
containers:
- name: c
  env: [{name: A, value: b}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  volumeMounts: [{name: v, mountPath: /v}]
volumes:
- {name: v, emptyDir: {}}
- {name: w, emptyDir: {}}
- {name: p, emptyDir: {}}
- {name: d, projected: {sources: [{downwardAPI: {}}]}}
- {name: h, hostPath: {path: /h}}
`
	static := &corev1.Pod{Spec: spec(with)}
	mirror := mirrorOf(static, &corev1.Node{})
	if want := spec(without); !reflect.DeepEqual(mirror.Spec, want) {
		t.Errorf("the mirror has %+v, want %+v", mirror.Spec, want)
	}
	if mirror.Annotations[AnnotationLocalObjects] == "" {
		t.Error("the mirror does not tell")
	}
	if !reflect.DeepEqual(static.Spec, spec(with)) {
		t.Error("the static pod was changed")
	}
	plain := mirrorOf(&corev1.Pod{Spec: spec(without)}, &corev1.Node{})
	if !reflect.DeepEqual(plain.Spec, spec(without)) || plain.Annotations[AnnotationLocalObjects] != "" {
		t.Errorf("a pod without them has the mirror %+v, %v", plain.Spec, plain.Annotations)
	}
}
