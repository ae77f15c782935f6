package register

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestSeen: a watch that lags behind this agent's own patches does not hide
// what must be told, and one that is ahead is used.
func TestSeen(t *testing.T) {
	b := newBench(t)
	var seen *corev1.Node
	b.run(func() {
		b.do(func() { seen = b.api.now() })
		b.api.do(func() { b.api.calls = nil })
		for _, short := range []bool{true, false, true} {
			b.do(func() { b.pressure.PID = short })
			b.r.Kick()
			synctest.Wait()
			if got := statusOf(b.api.now(), corev1.NodePIDPressure) == corev1.ConditionTrue; got != short {
				t.Errorf("told %v, want %v", got, short)
			}
		}
		if n := b.api.count("GET nodes"); n > 0 {
			t.Errorf("the node was read %d times beside the watch", n)
		}
		b.api.do(func() {
			b.api.node.Spec.PodCIDRs = []string{"10.1.0.0/24"}
			b.api.wrote(&b.api.node.ObjectMeta)
		})
		b.do(func() { seen = b.api.now() })
		b.pass(11 * time.Second)
		if !slices.Equal(b.cidrs, []string{"10.1.0.0/24"}) {
			t.Errorf("what the watch saw is not used: %v", b.cidrs)
		}
	}, func(p *Parts) {
		p.Seen = func(context.Context) (n *corev1.Node, err error) { b.do(func() { n = seen }); return n, nil }
	})
}

// TestQuietWatch: a watch that leaves the images out makes no change of them.
func TestQuietWatch(t *testing.T) {
	b := newBench(t)
	b.run(func() {
		b.pass(149 * time.Second)
		if n := b.api.count("PATCH"); n != 0 {
			t.Errorf("%d patches: %v", n, b.api.patches)
		}
		b.api.do(func() {
			b.api.node.Labels["operator"] = "was-here"
			b.api.wrote(&b.api.node.ObjectMeta)
		})
		b.pass(time.Hour)
		if n := b.api.count("PATCH"); n < 11 || n > 14 {
			t.Errorf("%d patches in an hour", n)
		}
		if n := b.api.now(); len(n.Status.Images) != 2 || n.Labels["operator"] != "was-here" || b.api.count("GET nodes") > 2 {
			t.Errorf("%d images, labels %v, %d reads", len(n.Status.Images), n.Labels, b.api.count("GET nodes"))
		}
	}, func(p *Parts) {
		p.Seen = func(context.Context) (*corev1.Node, error) {
			n := b.api.now()
			if n != nil {
				n.Status.Images = nil
			}
			return n, nil
		}
	})
}
