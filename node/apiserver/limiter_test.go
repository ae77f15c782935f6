package apiserver

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// crowd starts requests and notes who went when.
type crowd struct {
	t     *testing.T
	start time.Time
	limit *limiter
	mu    sync.Mutex
	lanes []LaneID
	at    []time.Duration
	wg    sync.WaitGroup
}

func newCrowd(t *testing.T, qps float64, burst int) *crowd {
	return &crowd{t: t, start: time.Now(), limit: newLimiter(qps, burst, nil)}
}

func (c *crowd) send(ctx context.Context, lane LaneID, n int) {
	for range n {
		c.wg.Go(func() {
			if err := c.limit.lane(lane).Wait(ctx); err != nil {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lanes, c.at = append(c.lanes, lane), append(c.at, time.Since(c.start))
		})
	}
	synctest.Wait()
}

func TestLimiterHoldsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, 3)
		c.send(t.Context(), LaneRead, 8)
		c.wg.Wait()
		ms := time.Millisecond
		want := []time.Duration{0, 0, 0, 100 * ms, 200 * ms, 300 * ms, 400 * ms, 500 * ms}
		if !slices.Equal(c.at, want) {
			t.Fatalf("requests went at %v, want %v", c.at, want)
		}
	})
}

func TestLimiterPutsLeaseFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 1)
		c.send(t.Context(), LaneRead, 3)
		c.send(t.Context(), LanePodStatus, 2)
		c.send(t.Context(), LaneNodeStatus, 1)
		c.send(t.Context(), LaneLease, 1)
		c.wg.Wait()
		want := []LaneID{LaneRead, LaneLease, LaneNodeStatus, LanePodStatus, LaneRead, LanePodStatus, LaneRead}
		if !slices.Equal(c.lanes, want) {
			t.Fatalf("order %v, want %v", c.lanes, want)
		}
	})
}

func TestLimiterGivesUpWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 1)
		c.send(t.Context(), LaneRead, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		// The one that gives up must not take the token with it.
		c.send(ctx, LaneLease, 1)
		c.send(t.Context(), LaneRead, 1)
		c.wg.Wait()
		if want := []time.Duration{0, time.Second}; !slices.Equal(c.at, want) {
			t.Fatalf("requests went at %v, want %v", c.at, want)
		}
		if err := c.limit.lane(LaneRead).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("an ended context waits: %v", err)
		}
	})
}

// A waiter may end in the moment when it is given its token.
func TestLimiterLosesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(1, 1, nil)
		l.try()
		var wg sync.WaitGroup
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wg.Go(func() { _ = l.lane(LanePodStatus).Wait(ctx) })
		}
		wg.Wait()
		start := time.Now()
		for range 3 {
			if err := l.lane(LaneRead).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Fatalf("three requests took %v at one per second", took)
		}
	})
}

func TestLimiterTellsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		l := newLimiter(1, 1, func(_ LaneID, waited time.Duration) { told = append(told, waited) })
		for range 2 {
			if err := l.lane(LaneRead).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(told, []time.Duration{0, time.Second}) {
			t.Fatalf("told %v", told)
		}
	})
}

// limited is a client as an agent has it, with a full bucket of either kind.
func limited(t *testing.T, api *fakeAPI, change func(*Config)) *Client {
	cfg := Default()
	cfg.REST = &rest.Config{Host: "https://127.0.0.1:1"}
	if api != nil {
		cfg = api.config()
	}
	change(&cfg)
	return mustNew(t, cfg)
}

// TestEventsAreHeldToTheirRate: by EventQPS and EventBurst, whatever the other
// requests may do; and the others by theirs, whatever events wait.
func TestEventsAreHeldToTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := limited(t, nil, func(c *Config) { c.QPS, c.Burst, c.EventQPS, c.EventBurst = 10, 2, 2, 4 })
		start := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		went := map[LaneID][]time.Duration{}
		send := func(lane LaneID, n int) {
			for range n {
				wg.Go(func() {
					if err := client.Lane(lane).Core().GetRateLimiter().Wait(t.Context()); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					went[lane] = append(went[lane], time.Since(start))
				})
			}
			synctest.Wait()
		}
		send(LaneEvents, 8) // before all others, and they go ahead
		send(LaneRead, 4)
		send(LanePodStatus, 1)
		send(LaneLease, 1)
		wg.Wait()
		ms := time.Millisecond
		for lane, want := range map[LaneID][]time.Duration{
			LaneEvents:    {0, 0, 0, 0, 500 * ms, 1000 * ms, 1500 * ms, 2000 * ms},
			LaneLease:     {100 * ms},
			LanePodStatus: {200 * ms},
			LaneRead:      {0, 0, 300 * ms, 400 * ms},
		} {
			if !slices.Equal(went[lane], want) {
				t.Errorf("%v: went at %v, want %v", lane, went[lane], want)
			}
		}
	})
}

// TestNothingWaitsForEvents: while events wait for their turn, for a quarter of
// an hour each here, heartbeats and statuses reach the API server.
func TestNothingWaitsForEvents(t *testing.T) {
	events := make(chan string, 100)
	api := newFakeAPI(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			events <- r.URL.Path
		}
		w.WriteHeader(http.StatusNoContent)
	})
	client := limited(t, api, func(c *Config) { c.QPS, c.Burst, c.EventQPS, c.EventBurst = 1000, 1000, 0.001, 2 })
	ctx, cancel := context.WithCancel(within(t))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_ = client.Lane(LaneEvents).Core().Post().Namespace("default").Resource("events").Body([]byte("{}")).Do(ctx).Error() // most never go
		})
	}
	for range 2 {
		<-events
	}
	for _, send := range []func() *rest.Request{
		func() *rest.Request {
			return client.Lane(LaneLease).Coordination().Put().Namespace("kube-node-lease").Resource("leases").Name("n")
		},
		func() *rest.Request {
			return client.Lane(LaneNodeStatus).Core().Put().Resource("nodes").Name("n").SubResource("status")
		},
		func() *rest.Request {
			return client.Lane(LanePodStatus).Core().Put().Namespace("default").Resource("pods").Name("p").SubResource("status")
		},
	} {
		for range 10 {
			if err := send().Body([]byte("{}")).Do(ctx).Error(); err != nil {
				t.Error(err)
			}
		}
	}
	cancel()
	wg.Wait()
	if n := len(api.requests()); n != 2+3*10 || len(events) > 0 {
		t.Errorf("%d requests, %d more events; want 2 events and 30 others", n, len(events))
	}
}

// TestNoEventLimit: a rate of 0 is no limit on events, as eventRecordQPS says.
func TestNoEventLimit(t *testing.T) {
	client := limited(t, nil, func(c *Config) { c.EventQPS = 0 })
	if l := client.Lane(LaneEvents).Core().GetRateLimiter(); l != nil && !reflect.ValueOf(l).IsZero() {
		t.Errorf("events are limited by %v", l)
	}
	if l := client.Lane(LanePodStatus).Core().GetRateLimiter(); l == nil {
		t.Error("other requests are not limited any more")
	}
}

func TestNoLimit(t *testing.T) {
	if got := newLimiter(0, 0, nil).lane(LaneRead); got != nil {
		t.Fatalf("a rate of 0 limits: %v", got)
	}
}
