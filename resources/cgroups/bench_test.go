package cgroups

import (
	"log/slog"
	"testing"
)

// BenchmarkPod is what a pod's cgroups cost on this machine.
func BenchmarkPod(b *testing.B) {
	cfg := Default()
	cfg.Names.Root = "/nodekit-bench"
	m, err := New(cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	trees, err := hierarchies(cfg.Mount)
	if err != nil {
		b.Skip(err)
	}
	pod := burstable("bench")
	for b.Loop() {
		if err := m.Ensure(b.Context(), pod); err != nil {
			b.Fatal(err)
		}
		if err := m.Remove(b.Context(), "bench"); err != nil {
			b.Fatal(err)
		}
	}
	for _, tree := range trees {
		if err := removeOnce(tree.dir + cfg.Names.Root); err != nil {
			b.Error(err)
		}
	}
}
