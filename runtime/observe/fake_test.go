package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/runtime"
)

// source is a runtime in memory.
type source struct {
	mu        sync.Mutex
	pods      map[string]runtime.Pod
	status    runtime.Status
	statusErr error
	listErr   error
	hung      map[string]bool // pods whose look does not answer; "list" and "status" too
	noEvents  bool
	refuse    bool               // the event stream can not be opened
	emit      func(runtime.Hint) // of the open stream
	cut       context.CancelFunc // ends the open stream
	lists     []time.Time
	asked     []time.Time // for the status
	opens     []time.Time // of the event stream
}

func newSource(uids ...string) *source {
	s := &source{pods: map[string]runtime.Pod{}, hung: map[string]bool{}}
	s.status = runtime.Status{Name: "mem", Version: "1", APIVersion: "v1", RuntimeReady: true, NetworkReady: true}
	for _, uid := range uids {
		s.put(uid, runtime.ContainerRunning)
	}
	return s
}

func (s *source) put(uid string, state runtime.ContainerState) {
	s.set(func() {
		s.pods[uid] = runtime.Pod{
			UID: uid, Sandboxes: []runtime.Sandbox{{ID: "s-" + uid, Ready: true}},
			Containers: []runtime.Container{{ID: "c-" + uid, State: state}},
		}
	})
}

func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// hang blocks until ctx ends, if what is asked for hangs.
func (s *source) hang(ctx context.Context, what string) error {
	s.mu.Lock()
	hung := s.hung[what]
	s.mu.Unlock()
	if hung {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (s *source) ListPods(ctx context.Context) ([]runtime.Pod, error) {
	s.set(func() { s.lists = append(s.lists, time.Now()) })
	if err := s.hang(ctx, "list"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var pods []runtime.Pod
	for _, p := range s.pods {
		pods = append(pods, p)
	}
	return pods, s.listErr
}

func (s *source) LookPod(ctx context.Context, uid string) (runtime.Pod, error) {
	if err := s.hang(ctx, uid); err != nil {
		return runtime.Pod{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[uid], nil
}

func (s *source) Status(ctx context.Context) (runtime.Status, error) {
	s.set(func() { s.asked = append(s.asked, time.Now()) })
	if err := s.hang(ctx, "status"); err != nil {
		return runtime.Status{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, s.statusErr
}

// noEventsError is how a runtime without events says so.
type noEventsError struct{}

func (noEventsError) Error() string       { return "no events" }
func (noEventsError) Unimplemented() bool { return true }

func (s *source) Events(ctx context.Context, opened func(), event func(runtime.Hint)) error {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	s.mu.Lock()
	s.opens = append(s.opens, time.Now())
	noEvents, refuse := s.noEvents, s.refuse
	s.emit, s.cut = event, cut
	s.mu.Unlock()
	if refuse {
		return errors.New("connection refused")
	}
	opened()
	if noEvents {
		return noEventsError{} // as gRPC does: after the stream was opened
	}
	<-ctx.Done()
	return errors.New("the stream broke")
}

// event sends an event on the open stream.
func (s *source) event(uid string) {
	s.mu.Lock()
	emit := s.emit
	s.mu.Unlock()
	emit(runtime.Hint{UID: uid, At: time.Now()})
}

// bench is an observer that runs, in a bubble of fake time.
type bench struct {
	t     *testing.T
	s     *source
	o     *Observer
	start time.Time

	mu    sync.Mutex
	hints []string
}

// run starts an observer in a bubble; it is stopped at the end, and the
// bubble fails the test if anything of it is left.
func run(t *testing.T, cfg Config, s *source, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o, err := New(cfg, s)
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, s: s, o: o, start: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx) }()
		go b.read(ctx)
		synctest.Wait()
		test(b)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		synctest.Wait()
	})
}

func (b *bench) read(ctx context.Context) {
	for {
		select {
		case hint := <-b.o.Hints():
			b.mu.Lock()
			b.hints = append(b.hints, hint.UID)
			b.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// pass lets fake time pass.
func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// taken gives the hints since the last time, sorted and joined; "*" is the
// hint to look at all pods.
func (b *bench) taken() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.hints
	b.hints = nil
	slices.Sort(got)
	for i, uid := range got {
		if uid == "" {
			got[i] = "*"
		}
	}
	return strings.Join(got, " ")
}

func (b *bench) want(what, hints string) {
	b.t.Helper()
	if got := b.taken(); got != hints {
		b.t.Errorf("after %v, %s: hints %q, want %q", time.Since(b.start), what, got, hints)
	}
}

// since gives how long after the start each time was, in seconds.
func (b *bench) since(times *[]time.Time) []float64 {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	var out []float64
	for _, at := range *times {
		out = append(out, at.Sub(b.start).Seconds())
	}
	*times = nil
	return out
}
