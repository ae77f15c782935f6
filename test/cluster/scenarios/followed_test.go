package scenarios

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/objects"
	"nodekit.dev/node/objects/follow"
	"nodekit.dev/test/integration/testbed"
)

// followed: what happens to an object right after it was read, and before it is
// watched, is known once the watch has begun. The API server must tell the state
// first, and that this was all of it.
func followed(t *testing.T, e *env, ns string) {
	for want, change := range map[string]func() error{
		"none": func() error {
			return e.core.Delete().Namespace(ns).Resource("configmaps").Name("none").Do(t.Context()).Error()
		},
		"new": func() error {
			return e.core.Put().Namespace(ns).Resource("configmaps").Name("new").Body(configMap("new", "new")).Do(t.Context()).Error()
		},
	} {
		if err := e.core.Post().Namespace(ns).Resource("configmaps").Body(configMap(want, "old")).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
		one := follow.NewOne(follow.Options[*corev1.ConfigMap]{
			Source: follow.Source{Client: e.core, Kind: objects.KindConfigMap, Resource: "configmaps", Namespace: ns, Name: want},
			New:    func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		go one.Run(ctx)
		if got := valueOf(one.Get(ctx)); got != "old" {
			t.Fatalf("first read: %s", got)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		changed := time.Now()
		err := testbed.Eventually(ctx, 10*time.Millisecond, func(ctx context.Context) error {
			if got := valueOf(one.Get(ctx)); got != want {
				return errors.New("it says " + got)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", want, err)
		}
		t.Logf("%s: known after %v", want, time.Since(changed).Round(time.Millisecond))
	}
}

func configMap(name, value string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{Data: map[string]string{"value": value}}
	m.Name = name
	return m
}

// valueOf is what a ConfigMap holds, "none" or the error.
func valueOf(m *corev1.ConfigMap, err error) string {
	var missing *objects.NotFoundError
	switch {
	case errors.As(err, &missing):
		return "none"
	case err != nil:
		return err.Error()
	}
	return m.Data["value"]
}
