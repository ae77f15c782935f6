package objects_test

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node/objects"
	"nodekit.dev/node/objects/internal/apitest"
)

// named gives an object the name shop/NAME.
func named[T metav1.Object](o T, name string) T {
	o.SetNamespace("shop")
	o.SetName(name)
	return o
}

func TestStoreTellsThePodsOfWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := objects.NewStore()
		apitest.Running(t, store.Run)
		first := make(chan error, 1)
		go func() {
			_, err := store.Secret(t.Context(), "a", "shop", "db")
			first <- err
		}()
		synctest.Wait()
		set := func(s *corev1.Secret, m *corev1.ConfigMap) {
			t.Helper()
			if err := store.Set([]*corev1.Secret{s}, []*corev1.ConfigMap{m}); err != nil {
				t.Fatal(err)
			}
		}
		set(named(apitest.Secret("1"), "db"), named(apitest.ConfigMap("1"), "conf"))
		if err := <-first; err != nil {
			t.Errorf("asked before the first Set: %v", err)
		}
		if m, err := store.ConfigMap(t.Context(), "b", "shop", "conf"); err != nil || m.Data["key"] != "1" {
			t.Errorf("%v, %v", m, err)
		}
		apitest.Changed(store.Changes())
		set(named(apitest.Secret("1"), "db"), named(apitest.ConfigMap("2"), "conf"))
		apitest.WantChanged(t, store.Changes(), "b")
		set(named(apitest.Secret("1"), "other"), named(apitest.ConfigMap("2"), "conf"))
		apitest.WantChanged(t, store.Changes(), "a")
		if _, err := store.Secret(t.Context(), "a", "shop", "db"); err == nil || err.Error() != `secret "db" not found` {
			t.Errorf("%v", err)
		}
		store.Release("a")
		set(named(apitest.Secret("2"), "db"), named(apitest.ConfigMap("2"), "conf"))
		apitest.WantChanged(t, store.Changes())
	})
}

func TestStoreRefusesWhatTheAPIWould(t *testing.T) {
	big := strings.Repeat("x", corev1.MaxSecretSize)
	for want, tc := range map[string]struct {
		secrets []*corev1.Secret
		maps    []*corev1.ConfigMap
	}{
		"named twice":                {secrets: []*corev1.Secret{named(apitest.Secret(""), "db"), named(apitest.Secret(""), "db")}},
		"metadata.name":              {secrets: []*corev1.Secret{named(apitest.Secret(""), "D B")}},
		"metadata.namespace":         {maps: []*corev1.ConfigMap{apitest.ConfigMap("")}},
		`key "../x"`:                 {secrets: []*corev1.Secret{named(&corev1.Secret{Data: map[string][]byte{"../x": nil}}, "db")}},
		`key ".."`:                   {maps: []*corev1.ConfigMap{named(&corev1.ConfigMap{Data: map[string]string{"..": ""}}, "c")}},
		"1048577 bytes of data":      {secrets: []*corev1.Secret{named(apitest.Secret(big+"x"), "db")}},
		"1048580 bytes of data":      {maps: []*corev1.ConfigMap{named(&corev1.ConfigMap{Data: map[string]string{"a": big}, BinaryData: map[string][]byte{"b": []byte("1234")}}, "c")}},
		"both in data and in binary": {maps: []*corev1.ConfigMap{named(&corev1.ConfigMap{Data: map[string]string{"a": ""}, BinaryData: map[string][]byte{"a": nil}}, "c")}},
	} {
		err := objects.NewStore().Set(tc.secrets, tc.maps)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	fits := []*corev1.Secret{named(apitest.Secret(big), "db")}
	if err := objects.NewStore().Set(fits, nil); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
}
