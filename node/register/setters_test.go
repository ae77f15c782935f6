package register

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/node"
)

func TestSetters(t *testing.T) {
	b := newBench(t)
	own := func(name string, after []string, set SetterFunc) node.Ordered[Setter] {
		return node.Ordered[Setter]{Name: name, After: after, Value: set}
	}
	parts := b.parts()
	parts.Setters = []node.Ordered[Setter]{
		own("gpu", []string{SetCapacity}, func(_ context.Context, n *corev1.Node) error {
			n.Status.Capacity["example.com/gpu"] = resource.MustParse("1")
			return nil
		}),
		own("broken", nil, func(context.Context, *corev1.Node) error { panic("oh") }),
		own(SetImages, nil, func(_ context.Context, n *corev1.Node) error { return errors.New("no images today") }),
		own("battery", []string{SetReady}, func(_ context.Context, n *corev1.Node) error {
			SetCondition(n, corev1.NodeCondition{Type: "BatteryLow", Status: corev1.ConditionTrue})
			return nil
		}),
	}
	parts.Resources = []node.Ordered[Contributor]{{Name: "fpga", Value: contributor{
		Capacity: corev1.ResourceList{"example.com/fpga": resource.MustParse("4")}, Allocatable: corev1.ResourceList{"example.com/fpga": resource.MustParse("3")},
		Gone: []corev1.ResourceName{"example.com/old"},
	}}}
	b.run(func() {
		n := b.api.now()
		for name, want := range map[corev1.ResourceName][2]int64{"example.com/gpu": {1, 1}, "example.com/fpga": {4, 3}, "example.com/old": {0, 0}} {
			capacity, allocatable := n.Status.Capacity[name], n.Status.Allocatable[name]
			if got := [2]int64{capacity.Value(), allocatable.Value()}; got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if statusOf(n, "BatteryLow") != corev1.ConditionTrue || !strings.HasPrefix(ready(n), "True") || n.Status.Images != nil {
			t.Errorf("status %+v", n.Status)
		}
		b.pass(10 * time.Minute)
		for _, want := range []string{"node status setter broken", "no images today"} {
			if n := strings.Count(b.logged(), want); n < 9 || n > 12 {
				t.Errorf("%q is logged %d times in ten minutes", want, n)
			}
		}
	}, func(p *Parts) { p.Setters, p.Resources = parts.Setters, parts.Resources })
}

type contributor Contribution

func (c contributor) Contribute(context.Context) (Contribution, error) { return Contribution(c), nil }
