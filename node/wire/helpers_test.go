package wire_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/wire"
)

// config is a whole configuration with directories of its own.
func config(t testing.TB, endpoint string) wire.Config {
	t.Helper()
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = "node-1", []string{"192.0.2.1"}
	cfg.RootDir, cfg.PodLogsDir = t.TempDir(), t.TempDir()
	cfg.CRI.Endpoint = endpoint
	return cfg
}

func podNamed(uid, name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.test/app:1"}}},
	}
	for _, e := range edit {
		e(pod)
	}
	return pod
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
