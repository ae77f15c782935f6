package probemetrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"nodekit.dev/metrics"
	"nodekit.dev/metrics/internal/metricstest"
	"nodekit.dev/probe"
)

func target(uid string) probe.Target {
	return probe.Target{Namespace: "default", Pod: "web-0", UID: uid, Container: "app", Type: probe.Readiness}
}

func checked(uid string, r probe.Result, took time.Duration) probe.Checked {
	return probe.Checked{Target: target(uid), Kind: probe.HTTPGet, Outcome: probe.Outcome{Result: r}, Queued: 20 * time.Millisecond, Took: took}
}

func TestChecked(t *testing.T) {
	m := New()
	o := m.Observer()
	for _, r := range []probe.Result{probe.Success, probe.Warning, probe.Failure, probe.Unknown} {
		o.Checked(checked("u1", r, 2*time.Second))
	}
	const labels = `container="app",namespace="default",pod="web-0",`
	metricstest.Want(t, m.Collectors(),
		`prober_probe_total{`+labels+`pod_uid="u1",probe_type="Readiness",result="successful"} 2`,
		`prober_probe_total{`+labels+`pod_uid="u1",probe_type="Readiness",result="failed"} 1`,
		`prober_probe_total{`+labels+`pod_uid="u1",probe_type="Readiness",result="unknown"} 1`,
		// Two successes and the unknown one, in Prometheus' own buckets.
		`prober_probe_duration_seconds_bucket{`+labels+`probe_type="Readiness",le="1"} 0`,
		`prober_probe_duration_seconds_bucket{`+labels+`probe_type="Readiness",le="2.5"} 3`,
		`prober_probe_duration_seconds_sum{`+labels+`probe_type="Readiness"} 6`,
		`nodekit_prober_queue_duration_seconds_count{kind="httpGet"} 4`,
		`nodekit_prober_queue_duration_seconds_bucket{kind="httpGet",le="0.025"} 4`,
	)
}

func TestForgottenTakesTheSeriesAway(t *testing.T) {
	m := New()
	o := m.Observer()
	for _, r := range []probe.Result{probe.Success, probe.Failure, probe.Unknown} {
		for _, kind := range []probe.Type{probe.Liveness, probe.Readiness, probe.Startup} {
			c := checked("u1", r, time.Second)
			c.Target.Type = kind
			o.Checked(c)
		}
	}
	other := checked("u1", probe.Success, time.Second)
	other.Target.Container = "sidecar"
	o.Checked(other)
	o.Forgotten(probe.Container{Namespace: "default", Pod: "web-0", UID: "u1", Name: "app"})
	o.Forgotten(probe.Container{Namespace: "default", Pod: "web-0", UID: "u1", Name: "never checked"})
	text := metricstest.Text(t, m.Collectors())
	if strings.Contains(text, `container="app"`) || !strings.Contains(text, `container="sidecar"`) {
		t.Error(text)
	}
	o.Forgotten(probe.Container{Namespace: "default", Pod: "web-0", UID: "u1", Name: "sidecar"})
	if len(m.measured) != 0 {
		t.Errorf("still held: %v", m.measured)
	}
}

// A StatefulSet's pod may be back under its name before the old one is
// forgotten. The durations, which have no UID, are then the new one's.
func TestForgottenSparesThePodThatCameAfter(t *testing.T) {
	m := New()
	o := m.Observer()
	o.Checked(checked("old", probe.Success, time.Second))
	o.Checked(checked("new", probe.Success, time.Second))
	o.Forgotten(probe.Container{Namespace: "default", Pod: "web-0", UID: "old", Name: "app"})
	text := metricstest.Text(t, m.Collectors())
	if strings.Contains(text, `pod_uid="old"`) || !strings.Contains(text, `pod_uid="new"`) || !strings.Contains(text, "\nprober_probe_duration_seconds_count{") {
		t.Error(text)
	}
	o.Forgotten(probe.Container{Namespace: "default", Pod: "web-0", UID: "new", Name: "app"})
	if text := metricstest.Text(t, m.Collectors()); strings.Contains(text, "\nprober_") {
		t.Error(text)
	}
}

// TestPodsOfOneWorkload: as with the stock kubelet they share the label pod, and
// so the durations, which stay as long as one of them does.
func TestPodsOfOneWorkload(t *testing.T) {
	m := New()
	o := m.Observer()
	gone := func(pod string) probe.Container {
		return probe.Container{Namespace: "default", Pod: pod, Workload: "web", UID: "uid of " + pod, Name: "app"}
	}
	for _, pod := range []string{"web-5d9c-aaaaa", "web-5d9c-bbbbb"} {
		c := checked("uid of "+pod, probe.Success, time.Second)
		c.Target.Pod, c.Target.Workload = pod, "web"
		o.Checked(c)
	}
	o.Forgotten(gone("web-5d9c-aaaaa"))
	metricstest.Want(t, m.Collectors(),
		`prober_probe_duration_seconds_count{container="app",namespace="default",pod="web",probe_type="Readiness"} 2`,
		`prober_probe_total{container="app",namespace="default",pod="web",pod_uid="uid of web-5d9c-bbbbb",probe_type="Readiness",result="successful"} 1`)
	if text := metricstest.Text(t, m.Collectors()); strings.Contains(text, "aaaaa") {
		t.Error(text)
	}
	o.Forgotten(gone("web-5d9c-bbbbb"))
	if text := metricstest.Text(t, m.Collectors()); strings.Contains(text, "\nprober_") || len(m.measured) != 0 {
		t.Error(text)
	}
}

func Example() {
	m := New()
	all := metrics.New()
	if err := all.Add(m.Collectors()...); err != nil {
		fmt.Println(err)
		return
	}
	m.Observer().Checked(probe.Checked{
		Target: probe.Target{Namespace: "default", Pod: "web", UID: "u", Container: "app", Type: probe.Liveness}, Kind: probe.Exec,
		Outcome: probe.Outcome{Result: probe.Failure, Output: "no such file"},
	})
	families, _ := all.Gather()
	for _, f := range families {
		if f.GetName() == "prober_probe_total" {
			fmt.Println(f.GetMetric()[0].GetLabel()[4].GetValue(), f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output: Liveness 1
}
