package source_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"nodekit.dev/node/source"
)

// TestReferences: what a static pod may not refer to, and what it may where
// there are local objects.
func TestReferences(t *testing.T) {
	for spec, want := range map[string]struct{ refused, local string }{
		`containers: [{name: c, env: [{name: A, value: b}]}]`: {},
		`serviceAccountName: default`:                         {"serviceaccounts", "serviceaccounts"},
		`imagePullSecrets: [{name: s}]`:                       {"secrets", ""},
		`containers: [{name: c, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]}]`: {"secrets", ""},
		`initContainers: [{name: c, envFrom: [{secretRef: {name: s}}]}]`:                                          {"secrets", ""},
		`ephemeralContainers: [{name: c, envFrom: [{configMapRef: {name: m}}]}]`:                                  {"configmaps", ""},
		`containers: [{name: c, env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}}}]}]`:              {"configmaps", ""},
		`volumes: [{name: v, configMap: {name: m}}]`:                                                              {"configmaps", ""},
		`volumes: [{name: v, secret: {secretName: s}}]`:                                                           {"secrets", ""},
		`volumes: [{name: v, projected: {sources: [{configMap: {name: m}}, {secret: {name: s}}]}}]`:               {"secrets", ""},
		`volumes: [{name: v, projected: {sources: [{configMap: {name: m}}, {serviceAccountToken: {path: t}}]}}]`:  {"configmaps", "serviceaccounts (via projected volumes)"},
		`volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {path: t}}]}}]`:                           {"clustertrustbundles", "clustertrustbundles"},
		`volumes: [{name: v, projected: {sources: [{podCertificate: {}}]}}]`:                                      {"podcertificates", "podcertificates"},
		`volumes: [{name: v, projected: {sources: [{downwardAPI: {}}]}}, {name: w, emptyDir: {}}]`:                {},
		`volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]`:                                             {"persistentvolumeclaims", "persistentvolumeclaims"},
		`volumes: [{name: v, ephemeral: {}}]`:                                                                     {"persistentvolumeclaims (via ephemeral volumes)", "persistentvolumeclaims (via ephemeral volumes)"},
		`volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: s}}}]`:                                 {"secrets", "csidrivers (via CSI volumes)"},
		`volumes: [{name: v, glusterfs: {}}]`:                                                                     {"endpoints (via glusterFS volumes)", "endpoints (via glusterFS volumes)"},
		`volumes: [{name: v, iscsi: {secretRef: {name: s}}}]`:                                                     {"secrets", ""},
		`resourceClaims: [{name: r, resourceClaimName: c}]`:                                                       {"resourceclaims", "resourceclaims"},
	} {
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		for local, kind := range map[bool]string{false: want.refused, true: want.local} {
			text := ""
			if err := source.RefuseReferences(local)(pod); err != nil {
				text = strings.TrimPrefix(err.Error(), "static pods may not reference ")
			}
			if text != kind {
				t.Errorf("%s, local %v: %q, want %q", spec, local, text, kind)
			}
		}
	}
}
