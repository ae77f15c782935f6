// Package exampletest runs the examples in their tests: each on the strict
// in-memory runtime behind a real CRI socket, so that no root and no containerd
// are needed.
package exampletest

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// limit is how long anything may take; it is a net, not a wait.
const limit = 30 * time.Second

// Running is a program that runs in the test.
type Running struct {
	t      testing.TB
	out    *output
	cancel context.CancelFunc
	done   chan error
}

// Run runs a program, which writes to out, until Stop or the end of the test.
func Run(t testing.TB, program func(ctx context.Context, out io.Writer) error) *Running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &Running{t: t, out: &output{news: make(chan struct{}, 1)}, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- program(ctx, r.out) }()
	t.Cleanup(func() {
		cancel()
		_ = r.wait() // a test that cares calls Stop
	})
	return r
}

// Await waits until the program has written text.
func (r *Running) Await(text string) {
	r.t.Helper()
	late := time.After(limit)
	for !strings.Contains(r.out.String(), text) {
		select {
		case <-r.out.news:
		case err := <-r.done:
			r.done <- err
			if !strings.Contains(r.out.String(), text) {
				r.t.Fatalf("the program ended (%v) before it wrote %q:\n%s", err, text, r.out)
			}
		case <-late:
			r.t.Fatalf("the program has not written %q:\n%s", text, r.out)
		}
	}
}

// Output is all that the program has written.
func (r *Running) Output() string { return r.out.String() }

// Stop ends the program and wants it to end well.
func (r *Running) Stop() {
	r.t.Helper()
	r.cancel()
	if err := r.wait(); err != nil {
		r.t.Errorf("the program ended with %v:\n%s", err, r.out)
	}
}

// wait gives the program's error, as often as it is asked.
func (r *Running) wait() error {
	select {
	case err := <-r.done:
		r.done <- err
		return err
	case <-time.After(limit):
		r.t.Fatalf("the program does not end:\n%s", r.out)
		return nil
	}
}

// Pod reads the runtime's pod of that name, and wants its containers to run.
func Pod(t testing.TB, w *runtimetest.World, name string) runtime.Pod {
	t.Helper()
	pods, err := w.ListPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Name != name {
			continue
		}
		for _, c := range pod.Containers {
			if c.State != runtime.ContainerRunning {
				t.Errorf("container %s is %s", c.Name, c.State)
			}
		}
		return pod
	}
	t.Fatalf("the runtime has no pod %s", name)
	return runtime.Pod{}
}

// output is a buffer that says when there is more in it.
type output struct {
	news chan struct{} // holds one token

	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.news <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
