package probes

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/internal/sockets"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/probe"
	"nodekit.dev/probe/checks"
)

// Options say what is measured. Zero fields get defaults.
type Options struct {
	// Servers is the program of the servers. Required.
	Servers string
	// Probes are half HTTP, half TCP; default 10,000.
	Probes int
	// Period of each probe, default 10 s. Probes begin over the first one, as
	// pods do not start all at once.
	Period time.Duration
	// Window is how long is measured after that; default 60 s.
	Window time.Duration
}

// Result is what the window saw.
type Result struct {
	Checks, Failed int
	// Late is how much later than due checks began.
	LateMedian, LateP99, LateMax time.Duration
	// TimeWait are the sockets that are in TIME_WAIT at the end, of all machine,
	// and were not before.
	TimeWait int
	// AtRest is the least number of goroutines seen, Goroutines the median.
	AtRest, Goroutines int
	// CPU, Bytes and Objects are per check, of the prober's process alone.
	CPU            time.Duration
	Bytes, Objects float64
}

// Measure probes servers of its own.
func Measure(ctx context.Context, o Options) (_ Result, err error) {
	o = o.withDefaults()
	servers, err := startServers(ctx, o.Servers)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, servers.stop()) }()
	seen := &lateness{}
	m, err := probe.New(probe.Config{
		Checks: checks.Default(checks.Config{}), Observers: []probe.Observer{{Checked: seen.checked}},
	})
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	defer func() { cancel(); err = errors.Join(err, ignoreEnd(<-ended)) }()
	before, err := sockets.TimeWait(0)
	if err != nil {
		return Result{}, err
	}
	if err := watchAll(ctx, m, o, servers); err != nil {
		return Result{}, err
	}
	return window(ctx, o, seen, before)
}

func (o Options) withDefaults() Options {
	if o.Probes == 0 {
		o.Probes = 10_000
	}
	if o.Period == 0 {
		o.Period = 10 * time.Second
	}
	if o.Window == 0 {
		o.Window = time.Minute
	}
	return o
}

func ignoreEnd(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// watchAll begins one probe after the other over one period.
func watchAll(ctx context.Context, m *probe.Manager, o Options, s *servers) error {
	began := time.Now()
	for i := range o.Probes {
		spec := probe.Spec{Period: o.Period, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 3}
		if i%2 == 0 {
			port := intstr.Parse(s.HTTP[i/2%len(s.HTTP)])
			spec.Handler.HTTPGet = &corev1.HTTPGetAction{Path: "/healthz", Port: port}
		} else {
			spec.Handler.TCPSocket = &corev1.TCPSocketAction{Port: intstr.Parse(s.TCP[i/2%len(s.TCP)])}
		}
		if _, err := m.Watch(probe.Container{UID: strconv.Itoa(i), Name: "c", Host: "127.0.0.1", Readiness: &spec}); err != nil {
			return err
		}
		if err := tasks.Pause(ctx, time.Until(began.Add(o.Period*time.Duration(i+1)/time.Duration(o.Probes)))); err != nil {
			return err
		}
	}
	return nil
}

// window measures for a while.
func window(ctx context.Context, o Options, seen *lateness, timeWaitBefore int) (Result, error) {
	seen.reset()
	var first, last runtime.MemStats
	runtime.ReadMemStats(&first)
	cpu := cpuTime()
	var goroutines []int
	for ended := time.Now().Add(o.Window); time.Now().Before(ended); {
		if err := tasks.Pause(ctx, 10*time.Millisecond); err != nil {
			return Result{}, err
		}
		goroutines = append(goroutines, runtime.NumGoroutine())
	}
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&last)
	waiting, err := sockets.TimeWait(0)
	if err != nil {
		return Result{}, err
	}
	r := seen.result()
	if r.Checks == 0 {
		return r, errors.New("no check was made")
	}
	slices.Sort(goroutines)
	r.AtRest, r.Goroutines = goroutines[0], goroutines[len(goroutines)/2]
	r.TimeWait = max(0, waiting-timeWaitBefore)
	r.CPU = cpu / time.Duration(r.Checks)
	r.Bytes = float64(last.TotalAlloc-first.TotalAlloc) / float64(r.Checks)
	r.Objects = float64(last.Mallocs-first.Mallocs) / float64(r.Checks)
	return r, nil
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// lateness gathers what checks tell.
type lateness struct {
	mu     sync.Mutex
	late   []time.Duration
	failed int
}

func (l *lateness) checked(c probe.Checked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, c.Queued)
	if c.Outcome.Result != probe.Success {
		l.failed++
	}
}

func (l *lateness) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late, l.failed = l.late[:0], 0
}

func (l *lateness) result() Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.late)
	if n == 0 {
		return Result{}
	}
	slices.Sort(l.late)
	return Result{Checks: n, Failed: l.failed, LateMedian: l.late[n/2], LateP99: l.late[n*99/100], LateMax: l.late[n-1]}
}
