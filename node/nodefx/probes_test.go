package nodefx_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/probe"
	"nodekit.dev/runtime/runtimetest"
)

// listener counts the checks that it is told of.
type listener struct{ failed, worked *atomic.Int32 }

func (l listener) ProbeChecked(c probe.Checked) {
	if c.Outcome.Result == probe.Success {
		l.worked.Add(1)
	} else {
		l.failed.Add(1)
	}
}

// TestProbeChecksOfAVendor: a kind's check is the vendor's, the pod follows what
// it finds, and the vendor's observer and the pod's events tell of it.
func TestProbeChecksOfAVendor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		var healthy atomic.Bool
		check := probe.Check(func(_ context.Context, target probe.Target) probe.Outcome {
			if healthy.Load() && target.Handler.TCPSocket != nil {
				return probe.Outcome{Result: probe.Success}
			}
			return probe.Outcome{Result: probe.Failure, Output: "the vendor says no"}
		})
		told := listener{new(atomic.Int32), new(atomic.Int32)}
		pod := actortest.Pod("u1", "web", func(p *corev1.Pod) {
			p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}, PeriodSeconds: 1,
			}
		})
		a := newAgent(t, onWorld(t, b,
			nodefx.AddProbeCheck(probe.TCPSocket, check), nodefx.AddProbeObserver(told),
			nodefx.AddSource("here", pods{name: "here", set: []*corev1.Pod{pod}}),
		)...)
		must(t, a.Start(t.Context()))
		<-time.After(10 * time.Second)
		if ready(b.Last("u1")) || told.failed.Load() == 0 {
			t.Errorf("ready: %v, %d checks failed", ready(b.Last("u1")), told.failed.Load())
		}
		if events := strings.Join(b.Events("u1"), " "); !strings.Contains(events, "Unhealthy") {
			t.Errorf("events %s", events)
		}
		healthy.Store(true)
		<-time.After(2 * time.Second)
		if !ready(b.Last("u1")) || told.worked.Load() == 0 {
			t.Errorf("ready: %v, %d checks worked", ready(b.Last("u1")), told.worked.Load())
		}
		must(t, a.Stop(t.Context()))
	})
}

func ready(update node.StatusUpdate) bool {
	for _, c := range update.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
