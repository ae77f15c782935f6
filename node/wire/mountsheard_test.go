package wire

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/volume"
	"nodekit.dev/volume/stats"
)

// TestMountsAreTold: the observer of the configuration hears of them, too.
func TestMountsAreTold(t *testing.T) {
	contents, changes, seen := &Contents{}, 0, 0
	contents.OnMountsChange(func() { changes++ })
	cfg := Config{}
	cfg.Volume.Observer.Done = func(volume.Operation) { seen++ }
	out := VolumeConfig(cfg, nil, nil, contents)
	for _, kind := range []string{"mount", "refresh", "unmount"} {
		out.Observer.Done(volume.Operation{Kind: kind})
	}
	if changes != 2 || seen != 3 {
		t.Errorf("%d changes, %d seen", changes, seen)
	}
}

// unplaced counts who looks for a volume.
type unplaced struct{ looks chan struct{} }

func (u unplaced) Place(context.Context, *corev1.Pod, string) (volume.Place, bool, error) {
	u.looks <- struct{}{}
	return volume.Place{}, false, nil
}

// TestMountsAreMeasured: the observer that VolumeConfig sets has a new mount
// measured long before its period is over, and no other operation.
func TestMountsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contents, u := &Contents{}, unplaced{make(chan struct{}, 10)}
		cfg := stats.Default()
		cfg.Period = time.Hour
		m, err := stats.New(cfg, u, Default().Log)
		if err != nil {
			t.Fatal(err)
		}
		contents.stats.Store(m)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid", Name: "pod"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		m.Follow(pod)
		<-u.looks

		done := VolumeConfig(Config{}, nil, nil, contents).Observer.Done
		done(volume.Operation{Kind: "refresh", UID: "uid", Volume: "data"})
		done(volume.Operation{Kind: "mount", UID: "uid", Volume: "data", Err: context.Canceled})
		select {
		case <-u.looks:
			t.Error("measured for nothing")
		case <-time.After(time.Minute):
		}
		done(volume.Operation{Kind: "mount", UID: "uid", Volume: "data"})
		select {
		case <-u.looks:
		case <-time.After(time.Minute):
			t.Error("a new mount was not measured")
		}
		cancel()
		<-ended
	})
}
