package apitest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/objects"
)

// Secret holds one value under "key".
func Secret(value string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{"key": []byte(value)}}
}

// ConfigMap holds one value under "key".
func ConfigMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: map[string]string{"key": value}}
}

// Running starts what a test is about and ends it with the test.
func Running(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// Changed takes what Changes says until it is silent.
func Changed(ch <-chan objects.Change) (uids []types.UID) {
	for {
		synctest.Wait()
		select {
		case change := <-ch:
			uids = append(uids, change.UID)
		default:
			slices.Sort(uids)
			return uids
		}
	}
}

// WantChanged wants these, and no others.
func WantChanged(t *testing.T, ch <-chan objects.Change, want ...types.UID) {
	t.Helper()
	if got := Changed(ch); !slices.Equal(got, want) {
		t.Errorf("changed: %v, want %v", got, want)
	}
}
