package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient/kubeclienttest"
	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// api is an API server in memory that keeps events. It is an http.RoundTripper,
// so that it runs in a synctest bubble.
type api struct {
	t testing.TB

	mu     sync.Mutex
	events map[string]*corev1.Event // by NAMESPACE/NAME
	order  []string
	calls  []string
	fail   func() error // nil: every call works
}

func newAPI(t testing.TB) *api { return &api{t: t, events: map[string]*corev1.Event{}} }

func (a *api) core() rest.Interface {
	return kubeclienttest.Client(corev1.SchemeGroupVersion, a, corev1.AddToScheme)
}

func (a *api) do(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// RoundTrip implements http.RoundTripper.
func (a *api) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	a.calls = append(a.calls, req.Method)
	var out any
	var err error
	if a.fail != nil {
		err = a.fail()
	}
	if err != nil {
		if _, ok := err.(apierrors.APIStatus); !ok {
			return nil, err
		}
	} else {
		out, err = a.keep(req)
	}
	code := http.StatusOK
	if err != nil {
		status := err.(apierrors.APIStatus).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		out, code = status, int(status.Code)
	}
	text, err := json.Marshal(out)
	if err != nil {
		a.t.Error(err)
	}
	return &http.Response{
		StatusCode: code, Request: req, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
	}, nil
}

func (a *api) keep(req *http.Request) (*corev1.Event, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	path := strings.Split(strings.TrimPrefix(req.URL.Path, "/api/v1/namespaces/"), "/") // NAMESPACE events [NAME]
	if req.Method == http.MethodPatch {
		e := a.events[path[0]+"/"+path[2]]
		if e == nil {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, path[2])
		}
		return e, json.Unmarshal(body, e)
	}
	e := &corev1.Event{TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}}
	if err := json.Unmarshal(body, e); err != nil {
		return nil, err
	}
	if e.Namespace != path[0] {
		a.t.Errorf("event of namespace %q sent to %q", e.Namespace, path[0])
	}
	key := e.Namespace + "/" + e.Name
	if a.events[key] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, e.Name)
	}
	a.events[key] = e
	a.order = append(a.order, key)
	return e, nil
}

// told are the events that the API server has, as "COUNTxREASON MESSAGE".
func (a *api) told() (out []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range a.order {
		if e := a.events[key]; e != nil {
			out = append(out, fmt.Sprintf("%dx%s %s", e.Count, e.Reason, e.Message))
		}
	}
	return out
}

type bench struct {
	t       *testing.T
	api     *api
	r       *Recorder
	log     bytes.Buffer
	dropped map[string]int
	stop    context.CancelFunc
	done    chan error
}

func run(t *testing.T, change func(*Config), fn func(*bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, api: newAPI(t), dropped: map[string]int{}, done: make(chan error, 1)}
		cfg := Default()
		cfg.NodeName = "n1"
		cfg.Gather = 0 // most tests want to see an event at once
		cfg.NodeUID = func() types.UID { return "node-uid" }
		cfg.Log = slog.New(slog.NewTextHandler(&b.log, nil))
		cfg.Observer.Dropped = func(why string) { b.api.do(func() { b.dropped[why]++ }) }
		if change != nil {
			change(&cfg)
		}
		var err error
		if b.r, err = New(cfg, b.api.core()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		b.stop = cancel
		go func() { b.done <- b.r.Run(ctx) }()
		synctest.Wait()
		fn(b)
		cancel()
		if err := <-b.done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}

func (b *bench) want(when string, want ...string) {
	b.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, b.api.told()); diff != "" {
		b.t.Errorf("%s: %s", when, diff)
	}
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func podEvent(name, reason, message, container string) node.PodEvent {
	return node.PodEvent{UID: "u-" + name, Namespace: "default", Name: name,
		Event: lifecycle.Event{Type: lifecycle.EventNormal, Reason: reason, Message: message, Container: container}}
}

func TestFormOfEvents(t *testing.T) {
	run(t, nil, func(b *bench) {
		at := metav1.NewTime(time.Now().Truncate(time.Second).Local())
		e := podEvent("web", "Started", "Container started", "app")
		e.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app"}}, InitContainers: []corev1.Container{{Name: "init"}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}},
		}}
		b.r.PodEvent(e)
		b.r.NodeEvent("Warning", "Rebooted", "Node n1 has been rebooted, boot id: x")
		b.want("two events", "1xStarted Container started", "1xRebooted Node n1 has been rebooted, boot id: x")
		common := corev1.Event{
			TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}, FirstTimestamp: at, LastTimestamp: at, Count: 1,
			Source: corev1.EventSource{Component: "kubelet", Host: "n1"}, ReportingController: "kubelet", ReportingInstance: "n1",
		}
		pod, n := common, common
		stamp := fmt.Sprintf(".%x", time.Now().UnixNano())
		next := fmt.Sprintf(".%x", time.Now().UnixNano()+1) // no two names are equal
		pod.Name, pod.Namespace, pod.Type, pod.Reason, pod.Message = "web"+stamp, "default", "Normal", "Started", "Container started"
		pod.InvolvedObject = corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "default", Name: "web", UID: "u-web",
			ResourceVersion: "7", FieldPath: "spec.containers{app}"}
		n.Name, n.Namespace, n.Type, n.Reason, n.Message = "n1"+next, "default", "Warning", "Rebooted", "Node n1 has been rebooted, boot id: x"
		n.InvolvedObject = corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: "n1", UID: "node-uid"}
		for key, want := range map[string]corev1.Event{"default/web" + stamp: pod, "default/n1" + next: n} {
			if diff := cmp.Diff(&want, b.api.events[key]); diff != "" {
				t.Error(diff)
			}
		}
		for container, want := range map[string]string{
			"init": "spec.initContainers{init}", "debug": "spec.ephemeralContainers{debug}", "": "", "none": "",
		} {
			if got := fieldPath(e.Pod, container); got != want {
				t.Errorf("%q: %q, want %q", container, got, want)
			}
		}
	})
}

func TestEventNames(t *testing.T) {
	now := time.Unix(1, 0)
	if got := eventName("web", now); got != "web.3b9aca00" {
		t.Error(got)
	}
	long := eventName(strings.Repeat("a", 250), now)
	if !strings.HasPrefix(long, "event.") || len(long) > 40 || long == eventName(strings.Repeat("a", 250), now) {
		t.Errorf("the name for a long name: %s", long)
	}
}

// TestSameEventIsCounted on the object that is there, until it has expired.
func TestSameEventIsCounted(t *testing.T) {
	run(t, nil, func(b *bench) {
		for range 3 {
			b.r.PodEvent(podEvent("web", "BackOff", "Back-off restarting", ""))
			pass(10 * time.Second)
		}
		b.r.PodEvent(podEvent("db", "BackOff", "Back-off restarting", ""))
		b.want("three times", "3xBackOff Back-off restarting", "1xBackOff Back-off restarting")
		first := b.api.events[b.api.order[0]]
		if took := first.LastTimestamp.Sub(first.FirstTimestamp.Time); took != 20*time.Second {
			t.Errorf("from first to last %v", took)
		}
		b.api.do(func() { clear(b.api.events) }) // their time to live is over
		b.r.PodEvent(podEvent("web", "BackOff", "Back-off restarting", ""))
		b.want("made anew", "4xBackOff Back-off restarting", "4xBackOff Back-off restarting") // listed twice: the same name
		if len(b.api.events) != 1 {
			t.Errorf("%d events", len(b.api.events))
		}
	})
}

func TestSimilarEventsAreCombined(t *testing.T) {
	run(t, nil, func(b *bench) {
		for i := range 12 {
			b.r.PodEvent(podEvent("web", "Failed", fmt.Sprint("try ", i), ""))
		}
		b.r.PodEvent(podEvent("web", "Failed", "try 3", ""))
		b.r.PodEvent(podEvent("web", "Killing", "another reason", ""))
		var want []string
		for i := range 9 {
			want = append(want, fmt.Sprintf("1xFailed try %d", i))
		}
		want[3] = "2xFailed try 3"
		b.want("twelve messages", append(want, "3xFailed (combined from similar events): try 11", "1xKilling another reason")...)
		pass(11 * time.Minute)
		b.r.PodEvent(podEvent("web", "Failed", "much later", ""))
		synctest.Wait()
		if told := b.api.told(); told[len(told)-1] != "1xFailed much later" {
			t.Errorf("after ten quiet minutes: %v", told)
		}
	})
}

func TestSpam(t *testing.T) {
	run(t, nil, func(b *bench) {
		spam := func(n int) {
			for i := range n {
				b.r.PodEvent(podEvent("web", fmt.Sprint("Reason", i), "x", ""))
			}
			synctest.Wait()
		}
		spam(40)
		if n := len(b.api.told()); n != 25 || b.dropped["spam"] != 15 {
			t.Errorf("%d events of one object were told, %d were not", n, b.dropped["spam"])
		}
		b.r.PodEvent(podEvent("db", "Reason", "x", ""))
		b.r.Event(corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "default", Name: "web", UID: "u-web"}, "Warning", "Reason", "x")
		synctest.Wait()
		if n := len(b.api.told()); n != 27 {
			t.Errorf("another object and another type: %d events", n)
		}
		pass(5 * time.Minute)
		spam(40)
		if n := len(b.api.told()); n != 27 { // one more, which is a known one
			t.Errorf("%d events after five minutes", n)
		}
		if b.dropped["spam"] != 15+39 {
			t.Errorf("dropped %v", b.dropped)
		}
	})
}

// TestAPIServerAway: events wait with the time at which they happened, counted,
// in order; the oldest make room, and all arrive within seconds.
func TestAPIServerAway(t *testing.T) {
	run(t, func(c *Config) { c.Queue = 3 }, func(b *bench) {
		b.api.do(func() { b.api.fail = func() error { return errors.New("connection refused") } })
		began := time.Now()
		for _, name := range []string{"a", "b", "b", "c", "d", "b"} {
			b.r.PodEvent(podEvent(name, "Started", name, ""))
			pass(time.Minute)
		}
		pass(20 * time.Minute)
		b.api.do(func() {
			if n := len(b.api.calls); n > 26*60/5+10 {
				t.Errorf("%d tries in 26 minutes", n)
			}
			b.api.fail = nil
		})
		pass(10 * time.Second)
		told := b.api.told()
		if len(told) != 3 || b.dropped["full"] != 1 {
			t.Errorf("told %v, dropped %v", told, b.dropped)
		}
		for _, e := range b.api.events {
			if e.Message == "b" && (e.Count != 3 || e.LastTimestamp.Sub(began) > 5*time.Minute+time.Second) {
				t.Errorf("%+v", e)
			}
		}
		if log := b.log.String(); strings.Count(log, "Unable to write event") != 1 || !strings.Contains(log, "events were lost while the API server was away") {
			t.Errorf("log: %s", log)
		}
	})
}

func TestOldAndRefusedEventsAreGivenUp(t *testing.T) {
	run(t, nil, func(b *bench) {
		b.api.do(func() { b.api.fail = func() error { return apierrors.NewUnauthorized("not yet") } })
		b.r.PodEvent(podEvent("web", "Started", "x", ""))
		pass(2 * time.Hour)
		if b.dropped["old"] != 1 || len(b.r.queue) != 0 {
			t.Errorf("dropped %v", b.dropped)
		}
		b.api.do(func() {
			b.api.fail = func() error {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", errors.New("no"))
			}
			b.api.calls = nil
		})
		b.r.PodEvent(podEvent("web", "Killing", "x", ""))
		pass(time.Minute)
		if b.dropped["refused"] != 1 || len(b.api.calls) != 1 {
			t.Errorf("dropped %v after %v", b.dropped, b.api.calls)
		}
		b.api.do(func() { b.api.fail = nil })
		b.r.PodEvent(podEvent("web", "Killing", "x", ""))
		b.want("once it is allowed", "2xKilling x")
	})
}

func TestRetry(t *testing.T) {
	gr := schema.GroupResource{Resource: "events"}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{errors.New("connection refused"), true},
		{apierrors.NewUnauthorized("x"), true},
		{apierrors.NewTooManyRequests("x", 1), true},
		{apierrors.NewInternalError(errors.New("x")), true},
		{apierrors.NewForbidden(gr, "x", nil), false},
		{apierrors.NewBadRequest("x"), false},
		{apierrors.NewAlreadyExists(gr, "x"), false},
	} {
		if got := retry(tt.err); got != tt.want {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
}

// TestStopTellsTheLast: what happened just before the end is still told.
func TestStopTellsTheLast(t *testing.T) {
	run(t, nil, func(b *bench) {
		b.api.do(func() { b.api.fail = func() error { return errors.New("down") } })
		b.r.PodEvent(podEvent("web", "Killing", "x", ""))
		pass(100 * time.Millisecond) // in its pause now
		b.api.do(func() { b.api.fail = nil })
		b.stop()
		b.want("at the end", "1xKilling x")
	})
}

// TestGather: the first event waits for others, and the last ones do not wait
// when the agent ends.
func TestGather(t *testing.T) {
	run(t, func(c *Config) { c.Gather = 500 * time.Millisecond }, func(b *bench) {
		for range 2 {
			b.r.PodEvent(podEvent("web", "BackOff", "x", ""))
			pass(240 * time.Millisecond)
		}
		b.r.PodEvent(podEvent("web", "Pulled", "y", ""))
		b.want("while it waits")
		pass(20 * time.Millisecond)
		b.want("then all", "2xBackOff x", "1xPulled y")
		b.r.PodEvent(podEvent("web", "Killing", "z", ""))
		b.want("after a quiet time", "2xBackOff x", "1xPulled y")
		b.stop()
		b.want("at the end", "2xBackOff x", "1xPulled y", "1xKilling z")
	})
}

func TestRecentForgets(t *testing.T) {
	r := newRecent[*int](2)
	fresh := func() *int { return new(int) }
	*r.get("a", fresh) = 1
	*r.get("b", fresh) = 2
	r.get("a", fresh) // b is the oldest now
	*r.get("c", fresh) = 3
	if a, b, c := *r.get("a", fresh), *r.get("b", fresh), len(r.entries); a != 1 || b != 0 || c != 2 || r.order.Len() != 2 {
		t.Errorf("a=%d b=%d, %d entries", a, b, c)
	}
}

func TestNewRefuses(t *testing.T) {
	core := newAPI(t).core()
	for want, change := range map[string]func(*Config){
		"NodeName: must not be empty": func(c *Config) { c.NodeName = "" }, "the Component must not be empty": func(c *Config) { c.Component = "" },
		"the Queue: 0 must be at least 1": func(c *Config) { c.Queue = 0 }, "RetryMin: 0s must be above 0": func(c *Config) { c.RetryMin = 0 },
		"the Gather: -1s must not be negative": func(c *Config) { c.Gather = -time.Second },
	} {
		cfg := Default()
		cfg.NodeName = "n1"
		change(&cfg)
		if _, err := New(cfg, core); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	cfg := Default()
	cfg.NodeName = "n1"
	if _, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), "no REST client") {
		t.Error(err)
	}
}
