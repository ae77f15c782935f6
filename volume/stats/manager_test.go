package stats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

// bed is a manager over volumes that need no host.
type bed struct {
	m    *Manager
	logs bytes.Buffer
	end  func() error

	mu        sync.Mutex
	unmounted map[string]bool // by the volume's name
	hung      map[string]chan struct{}
	reads     map[string]int
	inFlight  map[string]int
	most      map[string]int
	fail      error
	result    ReadResult
	measured  []Measured
	givenUp   []Measured
	changes   []Stats
}

func newBed(t *testing.T, change ...func(*Config)) *bed {
	b := &bed{unmounted: map[string]bool{}, hung: map[string]chan struct{}{}, reads: map[string]int{}, inFlight: map[string]int{}, most: map[string]int{}}
	b.result = ReadResult{Usage: Usage{Used: new(int64(7))}}
	cfg := Default()
	cfg.Readers = map[string]Reader{"csi": ReaderFunc(b.read), "nfs": ReaderFunc(b.read)}
	cfg.Observer = Observer{
		Measured:         func(m Measured) { b.locked(func() { b.measured = append(b.measured, m) }) },
		GivenUp:          func(m Measured) { b.locked(func() { b.givenUp = append(b.givenUp, m) }) },
		ConditionChanged: func(_ *corev1.Pod, s Stats) { b.locked(func() { b.changes = append(b.changes, s) }) },
		HealthChanged:    func(_ *corev1.Pod, s Stats) { b.locked(func() { b.changes = append(b.changes, s) }) },
	}
	for _, c := range change {
		c(&cfg)
	}
	m, err := New(cfg, b, slog.New(slog.NewTextHandler(&b.logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	b.m = m
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	b.end = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = b.end() })
	return b
}

func (b *bed) locked(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

// Place has the plugin in the volume's name: "csi-1" is of csi.
func (b *bed) Place(_ context.Context, _ *corev1.Pod, name string) (volume.Place, bool, error) {
	b.hang("place " + name)
	b.mu.Lock()
	defer b.mu.Unlock()
	plugin, _, _ := strings.Cut(name, "-")
	p := volume.Place{Plugin: plugin, Path: "/none"}
	p.Volume.Name = name
	if plugin == "csi" {
		p.PersistentVolume = &corev1.PersistentVolume{}
		p.PersistentVolume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d"}
		p.Claim = volume.Claim{Namespace: "ns", Name: "claim"}
	}
	return p, !b.unmounted[name], nil
}

// hang blocks until somebody lets it go, whatever any context says.
func (b *bed) hang(what string) {
	b.mu.Lock()
	wait := b.hung[what]
	b.mu.Unlock()
	if wait != nil {
		<-wait
	}
}

func (b *bed) read(_ context.Context, req ReadRequest) (ReadResult, error) {
	name := req.Volume.Name
	b.locked(func() {
		b.reads[name]++
		b.inFlight[name]++
		b.most[name] = max(b.most[name], b.inFlight[name])
	})
	b.hang(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight[name]--
	return b.result, b.fail
}

func (b *bed) count(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads[name]
}

func podWith(uid string, volumes ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "ns", "p", types.UID(uid)
	for _, name := range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name})
	}
	return pod
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestVolumesAreMeasuredEveryPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		pod := podWith("u", "csi-1", "nfs-1")
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}})
		b.m.Follow(pod)
		b.m.Follow(pod)
		if len(b.m.Snapshot("u")) != 0 {
			t.Error("figures before anything was measured")
		}
		pass(5 * time.Second)
		got := b.m.Snapshot("u")
		if len(got) != 2 || got[0].Kind != "csi:d" || got[0].Claim.Name != "claim" || got[1].Volume != "nfs-1" || *got[1].Used != 7 || len(b.m.All()) != 2 {
			t.Fatalf("%+v", got)
		}
		pass(10 * time.Minute)
		if n := b.count("csi-1"); n < 8 || n > 11 {
			t.Errorf("%d times in ten minutes", n)
		}
		if m := b.measured[0]; m.UID != "u" || m.Err != nil || !slices.Contains([]string{"d", "nfs"}, m.Source) {
			t.Errorf("%+v", m)
		}
		b.locked(func() { b.unmounted["nfs-1"] = true })
		pass(2 * time.Minute)
		if got := b.m.Snapshot("u"); len(got) != 1 {
			t.Errorf("figures of what is not mounted: %+v", got)
		}
		b.m.Forget("u")
		before := b.count("csi-1")
		pass(10 * time.Minute)
		if b.count("csi-1") != before || len(b.m.All()) != 0 {
			t.Error("a pod that was forgotten is measured")
		}
		if err := b.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestAMountIsMeasuredSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.unmounted["csi-1"] = true
		b.m.Follow(podWith("u", "csi-1"))
		pass(6 * time.Second)
		b.locked(func() { b.unmounted["csi-1"] = false })
		b.m.Mounted("u", "csi-1")
		b.m.Mounted("u", "none")
		pass(5 * time.Second)
		if len(b.m.Snapshot("u")) != 1 {
			t.Error("not measured")
		}
	})
}

func TestPeriodsOfKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, func(c *Config) {
			c.Periods = map[string]time.Duration{"csi:d": 10 * time.Minute, "csi": time.Second, "nfs": -1}
		})
		b.m.Follow(podWith("u", "csi-1", "nfs-1"))
		pass(time.Hour)
		if n := b.count("csi-1"); n < 5 || n > 6 {
			t.Errorf("%d times in an hour, every ten minutes", n)
		}
		if b.count("nfs-1") != 0 || len(b.m.Snapshot("u")) != 1 {
			t.Error("a kind that is off was measured")
		}
	})
	for _, period := range []time.Duration{0, -time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.Period = period })
			b.m.Follow(podWith("u", "csi-1"))
			b.m.Mounted("u", "csi-1")
			pass(time.Hour)
			if b.count("csi-1") != 0 {
				t.Error("measured although that is off")
			}
		})
	}
}

// TestAHungCallHoldsUpNothing: one volume's driver, another's mount hang for ever.
func TestAHungCallHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, func(c *Config) { c.Width = 1 })
		free := make(chan struct{})
		b.hung["csi-1"], b.hung["place nfs-1"] = free, free
		b.m.Follow(podWith("u", "csi-1", "nfs-1"))
		pass(6 * time.Second)
		b.m.Follow(podWith("v", "csi-2", "nfs-2"))
		pass(10 * time.Second)
		if len(b.m.Snapshot("v")) != 2 || len(b.m.Snapshot("u")) != 0 {
			t.Fatalf("others: %+v", b.m.Snapshot("v"))
		}
		pass(time.Hour)
		b.m.Mounted("u", "csi-1")
		pass(time.Hour)
		if b.most["csi-1"] != 1 || b.count("csi-1") != 1 || b.count("csi-2") < 80 {
			t.Errorf("%d calls in flight, %d in all; of its neighbour %d", b.most["csi-1"], b.count("csi-1"), b.count("csi-2"))
		}
		if len(b.givenUp) != 2 || b.givenUp[0].UID != "u" || strings.Count(b.logs.String(), "hangs") != 2 {
			t.Errorf("told: %+v\n%s", b.givenUp, &b.logs)
		}
		close(free) // the server is back
		b.locked(func() { b.hung = map[string]chan struct{}{} })
		pass(5 * time.Minute)
		if len(b.m.Snapshot("u")) != 2 || b.count("csi-1") < 3 {
			t.Errorf("not measured again: %+v", b.m.Snapshot("u"))
		}
	})
}

func TestRunEndsWithACallThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		free := make(chan struct{})
		b.hung["csi-1"] = free
		b.m.Follow(podWith("u", "csi-1"))
		pass(6 * time.Second)
		start := time.Now()
		if err := b.end(); !errors.Is(err, context.Canceled) || time.Since(start) > lastGrace {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(free)
	})
}

func TestAFailureLeavesTheFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.m.Follow(podWith("u", "csi-1"))
		pass(6 * time.Second)
		b.locked(func() { b.fail = errors.New("driver is away") })
		pass(10 * time.Minute)
		if got := b.m.Snapshot("u"); len(got) != 1 || time.Since(got[0].At) < 9*time.Minute {
			t.Errorf("%+v", got)
		}
		if n := strings.Count(b.logs.String(), "driver is away"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &b.logs)
		}
		if last := b.measured[len(b.measured)-1]; last.Err == nil || last.Source != "d" {
			t.Errorf("%+v", last)
		}
	})
}

// TestAReaderThatIsBusyIsAskedAgainSoon: that is no failure.
func TestAReaderThatIsBusyIsAskedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.fail = reasoned.New("", errors.New("another call is in flight")).After(time.Second)
		b.m.Follow(podWith("u", "csi-1"))
		pass(20 * time.Second)
		if n := b.count("csi-1"); n < 8 || b.logs.Len() > 0 {
			t.Errorf("asked %d times in 20 s\n%s", n, &b.logs)
		}
		b.locked(func() { b.fail = nil })
		pass(2 * time.Second)
		if len(b.m.Snapshot("u")) != 1 {
			t.Error("not measured")
		}
	})
}

func TestAPanicOfAReaderIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, func(c *Config) {
			c.Readers["bad"] = ReaderFunc(func(context.Context, ReadRequest) (ReadResult, error) { panic("oops") })
		})
		b.m.Follow(podWith("u", "bad-1", "csi-1"))
		pass(5 * time.Minute)
		if b.count("csi-1") < 3 || !strings.Contains(b.logs.String(), "oops") {
			t.Error(b.logs.String())
		}
	})
}

func TestConditionsAreToldWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, func(c *Config) { c.Conditions = true })
		b.result.Condition = &Condition{Abnormal: true, Message: "bad blocks"}
		b.m.Follow(podWith("u", "csi-1"))
		pass(10 * time.Minute)
		if len(b.changes) != 1 || !b.changes[0].Condition.Abnormal || b.changes[0].Condition.Message != "bad blocks" {
			t.Fatalf("%+v", b.changes)
		}
		b.locked(func() { b.result.Condition = &Condition{} })
		pass(10 * time.Minute)
		if len(b.changes) != 2 || b.changes[1].Condition.Abnormal {
			t.Errorf("%+v", b.changes)
		}
	})
}

func TestHealthStaysWhereTheDriverDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, func(c *Config) { c.Health = true })
		b.result.HealthKnown = true
		b.m.Follow(podWith("u", "csi-1"))
		pass(5 * time.Minute)
		if len(b.changes) != 0 {
			t.Errorf("a sound volume is news: %+v", b.changes)
		}
		bad := []corev1.VolumeHealthCondition{{Status: corev1.VolumeHealthDegraded, Reason: "A"}, {Status: corev1.VolumeHealthDataLoss, Reason: "B"}}
		b.locked(func() { b.result.Health = bad })
		pass(5 * time.Minute)
		b.locked(func() { b.result.Health = []corev1.VolumeHealthCondition{bad[1], bad[0]} }) // in another order
		pass(5 * time.Minute)
		b.locked(func() { b.result.Health, b.result.HealthKnown = nil, false }) // it does not answer
		pass(5 * time.Minute)
		got := b.m.Snapshot("u")
		if len(b.changes) != 1 || len(got[0].Health) != 2 || !got[0].HealthKnown || got[0].HealthSince != b.changes[0].HealthSince {
			t.Errorf("changes %+v, now %+v", b.changes, got)
		}
		b.locked(func() { b.result.HealthKnown = true })
		pass(5 * time.Minute)
		if got := b.m.Snapshot("u"); len(b.changes) != 2 || len(got[0].Health) != 0 || !got[0].HealthSince.After(b.changes[0].HealthSince) {
			t.Errorf("%+v", got)
		}
	})
}

// TestManyVolumes: figures of a full node, and the order of the queue.
func TestManyVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		for i := range 250 {
			uid := fmt.Sprintf("u%03d", i)
			b.m.Follow(podWith(uid, "csi-"+uid, "nfs-"+uid))
			if i%3 == 0 {
				b.m.Forget(uid)
			}
		}
		pass(10 * time.Minute)
		if got := len(b.m.All()); got != 2*166 {
			t.Errorf("%d volumes", got)
		}
		for name, n := range b.reads {
			if n < 8 || n > 11 {
				t.Errorf("%s: %d times", name, n)
			}
		}
	})
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"Timeout": func(c *Config) { c.Timeout = -1 }, "Width": func(c *Config) { c.Width = -1 }, "Walk": func(c *Config) { c.Walk.Slice = -1 },
	} {
		cfg := Default()
		change(&cfg)
		if _, err := New(cfg, nil, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
