package nodefx_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
)

// TestSizeLimit: a pod whose emptyDir holds more than it may is evicted, with the
// stock words; its neighbour and one that is critical are not; where that is off, neither is.
func TestSizeLimit(t *testing.T) {
	for _, on := range []bool{true, false} {
		b := actortest.New(t, runtimetest.Config{})
		limit := resource.MustParse("5Mi")
		limited := func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
			mountAll(p)
		}
		critical := func(p *corev1.Pod) { limited(p); p.Spec.Priority = new(int32(2_000_001_000)) }
		var root string
		var from wire.VolumeStats
		a := newAgent(t, append(worldWithStockVolumes(t, b),
			nodefx.Configure(func(c *wire.Config) {
				root, c.VolumeStats.Period, c.VolumeStats.Walk.Ratio, c.SizeLimits = c.RootDir, 20*time.Millisecond, 1, on
			}),
			nodefx.AddSource("api", pods{"api", []*corev1.Pod{actortest.Pod("1", "web", limited), actortest.Pod("2", "other", limited), actortest.Pod("3", "critical", critical)}}),
			nodefx.AddStatusSink(b), nodefx.AddEventSink(b), nodefx.Populate(&from),
		)...)
		must(t, a.Start(t.Context()))
		eventually(t, "all are measured", func() bool { return len(from.All()) == 3 })
		tenMegabytes(t, filepath.Join(root, "pods/3/volumes/kubernetes.io~empty-dir/data"))
		eventually(t, "it is measured", func() bool { s := from.Snapshot("3"); return *s[0].Used >= 10<<20 })
		tenMegabytes(t, filepath.Join(root, "pods/1/volumes/kubernetes.io~empty-dir/data"))
		if on {
			eventually(t, "the pod is evicted", func() bool {
				s := b.Last("1").Status
				return s.Phase == corev1.PodFailed && s.Reason == "Evicted" && s.Message == `Usage of EmptyDir volume "data" exceeds the limit "5Mi". `
			})
			if n := len(slices.DeleteFunc(b.Events("1"), func(e string) bool { return e != "Evicted" })); n != 1 {
				t.Errorf("told %d times", n)
			}
		} else {
			eventually(t, "more is measured", func() bool { s := from.Snapshot("1"); return len(s) == 1 && *s[0].Used >= 10<<20 })
			if s := b.Last("1").Status; s.Phase != corev1.PodRunning {
				t.Errorf("%+v", s)
			}
		}
		for _, uid := range []string{"2", "3"} {
			if s := b.Last(uid).Status; s.Phase != corev1.PodRunning {
				t.Errorf("pod %s: %+v", uid, s)
			}
		}
		must(t, a.Stop(t.Context()))
	}
}
