package stats_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/volume"
	"nodekit.dev/volume/stats"
)

// mounted is what a *volume.Manager is: it knows where volumes are.
type mounted struct{}

func (mounted) Place(context.Context, *corev1.Pod, string) (volume.Place, bool, error) {
	return volume.Place{Plugin: "vendor.example/flash"}, true, nil
}

func Example() {
	told := make(chan struct{})
	cfg := stats.Default()
	cfg.Periods = map[string]time.Duration{"vendor.example/flash": time.Millisecond}
	cfg.Readers = map[string]stats.Reader{"vendor.example/flash": stats.ReaderFunc(
		func(context.Context, stats.ReadRequest) (stats.ReadResult, error) {
			return stats.ReadResult{Usage: stats.Usage{Used: new(int64(42))}}, nil
		})}
	first := true
	cfg.Observer.Measured = func(stats.Measured) {
		if first {
			close(told)
		}
		first = false
	}
	m, err := stats.New(cfg, mounted{}, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	pod := &corev1.Pod{}
	pod.UID = "u"
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	m.Follow(pod)
	<-told
	stop()
	<-ended
	for _, s := range m.Snapshot("u") {
		fmt.Println(s.Volume, s.Kind, *s.Used)
	}
	// Output: data vendor.example/flash 42
}
