package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/runtime"
)

// store is an in-memory image service that fails the test when an agent does
// what it must not do: two pulls of one image at once.
type store struct {
	t     *testing.T
	takes time.Duration // of each pull

	mu       sync.Mutex
	present  map[string]bool
	fail     map[string]error // by image
	failAuth map[string]error // by user name
	inspect  error
	pulling  map[string]bool
	order    []string // begun pulls
	most     int      // pulls at once
	ended    int
}

func newStore(t *testing.T) *store {
	return &store{t: t, takes: time.Second, present: map[string]bool{}, fail: map[string]error{}, failAuth: map[string]error{}, pulling: map[string]bool{}}
}

func (s *store) ImageStatus(ctx context.Context, spec runtime.ImageSpec) (runtime.ImageInfo, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inspect != nil {
		return runtime.ImageInfo{}, false, s.inspect
	}
	return runtime.ImageInfo{ID: "id-" + spec.Image, Size: 42}, s.present[spec.Image], ctx.Err()
}

func (s *store) PullImage(ctx context.Context, pull runtime.ImagePull) (string, error) {
	image := pull.Spec.Image
	s.mu.Lock()
	if s.pulling[image] {
		s.t.Errorf("two pulls of %s at once", image)
	}
	s.pulling[image] = true
	s.order = append(s.order, image+pull.Auth.Username)
	s.most = max(s.most, len(s.pulling))
	s.mu.Unlock()

	timer := time.NewTimer(s.takes)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pulling, image)
	s.ended++
	if err == nil {
		err = errors.Join(s.fail[image], s.failAuth[pull.Auth.Username])
	}
	if err != nil {
		return "", err
	}
	s.present[image] = true
	return "id-" + image, nil
}

func newPuller(t *testing.T, cfg Config, s Service) *Puller {
	t.Helper()
	p, err := New(cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func req(pod, image string) Request { return Request{PodUID: pod, PodName: pod, Image: image} }

func wantErr(t *testing.T, err error, reason, message string, retry time.Duration) {
	t.Helper()
	if err == nil || reasoned.Reason(err, "") != reason || err.Error() != message {
		t.Fatalf("got %q %v,\nwant %q %s", reasoned.Reason(err, ""), err, reason, message)
	}
	if got := reasoned.RetryAfter(err, 0); got != retry {
		t.Fatalf("retry after %v, want %v", got, retry)
	}
}

func TestPolicies(t *testing.T) {
	cases := []struct {
		policy  string
		present bool
		pulls   int
		reason  string
	}{
		{"IfNotPresent", false, 1, ""},
		{"IfNotPresent", true, 0, ""},
		{"", true, 0, ""},
		{"Always", true, 1, ""},
		{"Always", false, 1, ""},
		{"Never", true, 0, ""},
		{"Never", false, 0, ReasonNeverPull},
		{"Sometimes", false, 0, ReasonPull},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s present=%v", c.policy, c.present), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				s.present["web:latest"] = c.present
				r := req("a", "web")
				r.Policy = c.policy
				ref, err := newPuller(t, Config{}, s).Pull(t.Context(), r)
				if reasoned.Reason(err, "") != c.reason || len(s.order) != c.pulls {
					t.Fatalf("%d pulls, error %v", len(s.order), err)
				}
				if c.reason == "" && ref != "id-web:latest" {
					t.Fatalf("ref %q", ref)
				}
			})
		})
	}
}

func TestMessagesAreTheStockOnes(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(*store)
		request Request
		reason  string
		message string
		retry   time.Duration
	}{
		{"never", func(*store) {}, Request{Image: "web", Policy: "Never"},
			"ErrImageNeverPull", `Container image "web" is not present with pull policy of Never`, 0},
		{"name", func(*store) {}, Request{Image: "Web:1"},
			"InvalidImageName", `Failed to apply default image tag "Web:1": couldn't parse image name "Web:1": invalid reference format: repository name (library/Web) must be lowercase`, 0},
		{"inspect", func(s *store) { s.inspect = errors.New("disk is sick") }, Request{Image: "web"},
			"ImageInspectError", `Failed to inspect image "web": disk is sick`, 0},
		{"pull", func(s *store) { s.fail["web:latest"] = errors.New("rpc error: code = NotFound desc = no such image") }, Request{Image: "web"},
			"ErrImagePull", `rpc error: code = NotFound desc = no such image`, 10 * time.Second},
		{"registry", func(s *store) {
			s.fail["web:latest"] = errors.New("rpc error: code = Unknown desc = RegistryUnavailable: dial tcp: refused")
		}, Request{Image: "web"},
			"RegistryUnavailable", `image pull failed for web because the registry is unavailable: dial tcp: refused`, 10 * time.Second},
		{"signature", func(s *store) { s.fail["web:latest"] = errors.New("SignatureValidationFailed: no key") }, Request{Image: "web"},
			"SignatureValidationFailed", `image pull failed for web because the signature validation failed: no key`, 10 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				c.prepare(s)
				_, err := newPuller(t, Config{}, s).Pull(t.Context(), c.request)
				wantErr(t, err, c.reason, c.message, c.retry)
			})
		})
	}
}

func TestBackOffDoublesHoldsAndEndsWithSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.fail["web:latest"] = errors.New("boom")
		p := newPuller(t, Config{}, s)
		for i, want := range []int{10, 20, 40, 80, 160, 300, 300} {
			_, err := p.Pull(t.Context(), req("a", "web"))
			wantErr(t, err, "ErrImagePull", "boom", time.Duration(want)*time.Second)

			<-time.After(time.Duration(want-1) * time.Second)
			_, err = p.Pull(t.Context(), req("a", "web"))
			wantErr(t, err, "ImagePullBackOff", `Back-off pulling image "web": ErrImagePull: boom`, time.Second)
			<-time.After(time.Second)
			if len(s.order) != i+1 {
				t.Fatalf("%d pulls after %d failures", len(s.order), i+1)
			}
		}
		// Another pod is not held back by this one's failures.
		_, err := p.Pull(t.Context(), req("b", "web"))
		wantErr(t, err, "ErrImagePull", "boom", 10*time.Second)

		delete(s.fail, "web:latest")
		if _, err := p.Pull(t.Context(), req("a", "web")); err != nil {
			t.Fatal(err)
		}
		if p.failures.Len() != 1 {
			t.Fatal("success did not end the back-off")
		}
	})
}

// A present image is used even while its pod backs off (it may have been
// loaded by hand).
func TestPresentImageEndsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.fail["web:latest"] = errors.New("boom")
		p := newPuller(t, Config{}, s)
		_, _ = p.Pull(t.Context(), req("a", "web"))
		s.present["web:latest"] = true
		if _, err := p.Pull(t.Context(), req("a", "web")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOnePullPerImageIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		var mu sync.Mutex
		var done []PullDone
		p := newPuller(t, Config{Observer: Observer{PullDone: func(_ Request, d PullDone) {
			mu.Lock()
			defer mu.Unlock()
			done = append(done, d)
		}}}, s)
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if ref, err := p.Pull(t.Context(), req(fmt.Sprint(i), "web:1")); err != nil || ref != "id-web:1" {
					t.Errorf("%q, %v", ref, err)
				}
			})
		}
		wg.Wait()
		if len(s.order) != 1 || len(done) != 10 {
			t.Fatalf("%d pulls, %d told", len(s.order), len(done))
		}
		own := 0
		for _, d := range done {
			if !d.Shared {
				own++
			}
			if d.Size != 42 || d.Took != time.Second || d.Waited != time.Second {
				t.Fatalf("told %+v", d)
			}
		}
		if own != 1 || len(p.flights) != 0 {
			t.Fatalf("%d requests say they pulled; %d flights left", own, len(p.flights))
		}
	})
}

// TestObserverOfOneRequest is told beside the one of all, and nothing of others.
func TestObserverOfOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all, own []string
		to := func(list *[]string) Observer {
			return Observer{
				Present:     func(r Request, image runtime.ImageInfo) { *list = append(*list, r.PodUID+" has "+image.ID) },
				PullStarted: func(r Request) { *list = append(*list, r.PodUID+" pulls") },
				PullDone: func(r Request, d PullDone) {
					*list = append(*list, fmt.Sprintf("%s pulled %d bytes: %v", r.PodUID, d.Size, d.Err))
				},
			}
		}
		p := newPuller(t, Config{Observer: to(&all)}, newStore(t))
		mine, other := req("a", "web:1"), req("b", "web:1")
		mine.Observer = to(&own)
		for _, r := range []Request{mine, other, mine} {
			if _, err := p.Pull(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"a pulls", "a pulled 42 bytes: <nil>", "a has id-web:1"}; !slices.Equal(own, want) {
			t.Errorf("the request's own: %q, want %q", own, want)
		}
		if want := []string{"a pulls", "a pulled 42 bytes: <nil>", "b has id-web:1", "a has id-web:1"}; !slices.Equal(all, want) {
			t.Errorf("the one of all: %q, want %q", all, want)
		}
	})
}

func TestCancelledWaiterLeavesThePullToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		p := newPuller(t, Config{}, s)
		first, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { _, err := p.Pull(first, req("a", "web")); errs <- err }()
		synctest.Wait()
		go func() { _, err := p.Pull(t.Context(), req("b", "web")); errs <- err }()
		synctest.Wait()

		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Fatalf("the cancelled one got %v", err)
		}
		if err := <-errs; err != nil || len(s.order) != 1 {
			t.Fatalf("the other got %v after %d pulls", err, len(s.order))
		}
		if p.failures.Len() != 0 {
			t.Fatal("a cancelled request counted as a failure")
		}
	})
}

func TestLastWaiterCancelsThePullAndItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		p := newPuller(t, Config{}, s)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := p.Pull(ctx, req("a", "web"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if s.ended != 1 || s.present["web:latest"] {
			t.Fatal("the pull went on without anybody waiting for it")
		}
		if _, err := p.Pull(t.Context(), req("b", "web")); err != nil {
			t.Fatal(err)
		}
	})
}

// Many requests come, go and join at random; the store fails the test on a
// double pull, and everyone who stays gets the image.
func TestChurnOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		p := newPuller(t, Config{MaxParallel: 2}, s)
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				<-time.After(time.Duration(i*37%5000) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i*61%3000)*time.Millisecond)
				defer cancel()
				r := req(fmt.Sprint(i), fmt.Sprintf("image:%d", i%5))
				r.Policy = PullAlways
				if _, err := p.Pull(ctx, r); err != nil && ctx.Err() == nil {
					t.Errorf("request %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if s.most > 2 || len(p.flights) != 0 || p.queue.free != 2 || len(p.queue.waiting) != 0 {
			t.Fatalf("%d at once, %d flights left, %d slots free, %d waiting", s.most, len(p.flights), p.queue.free, len(p.queue.waiting))
		}
	})
}

func TestCapAndOldestPodFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		p := newPuller(t, Config{MaxParallel: 1}, s)
		created := time.Now()
		var wg sync.WaitGroup
		for _, age := range []int{0, 1, 3, 2} { // minutes; the first takes the slot
			r := req(fmt.Sprint(age), fmt.Sprintf("image:%d", age))
			r.PodCreated = created.Add(-time.Duration(age) * time.Minute)
			wg.Go(func() { _, _ = p.Pull(t.Context(), r) })
			synctest.Wait()
		}
		// An older pod that wants the same image moves it to the front.
		r := req("old", "image:1")
		r.PodCreated = created.Add(-time.Hour)
		wg.Go(func() { _, _ = p.Pull(t.Context(), r) })
		wg.Wait()
		if want := []string{"image:0", "image:1", "image:3", "image:2"}; !slices.Equal(s.order, want) || s.most != 1 {
			t.Fatalf("order %v (at most %d at once), want %v", s.order, s.most, want)
		}
	})
}

func TestParallelLimits(t *testing.T) {
	for _, c := range []struct{ limit, most int }{{0, 5}, {3, 3}, {-1, 12}} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t)
				p := newPuller(t, Config{MaxParallel: c.limit}, s)
				var wg sync.WaitGroup
				for i := range 12 {
					wg.Go(func() { _, _ = p.Pull(t.Context(), req("a", fmt.Sprintf("image:%d", i))) })
				}
				wg.Wait()
				if s.most != c.most {
					t.Fatalf("%d at once, want %d", s.most, c.most)
				}
			})
		})
	}
}

// byPod gives each pod the users that are listed for it.
type byPod map[string][]string

func (b byPod) Credentials(_ context.Context, r Request) ([]runtime.ImageAuth, error) {
	if b == nil {
		return nil, errors.New("no secrets yet")
	}
	var out []runtime.ImageAuth
	for _, user := range b[r.PodUID] {
		out = append(out, runtime.ImageAuth{Username: user})
	}
	return out, nil
}

func TestCredentialsAreTriedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.failAuth["bad"] = errors.New("denied")
		p := newPuller(t, Config{Auth: byPod{"a": {"bad", "good"}, "b": {"bad", "bad"}}}, s)
		if _, err := p.Pull(t.Context(), req("a", "web:1")); err != nil {
			t.Fatal(err)
		}
		if want := []string{"web:1bad", "web:1good"}; !slices.Equal(s.order, want) {
			t.Fatalf("tried %v, want %v", s.order, want)
		}
		_, err := p.Pull(t.Context(), req("b", "web:2"))
		wantErr(t, err, "ErrImagePull", "denied", 10*time.Second)

		p = newPuller(t, Config{Auth: byPod(nil)}, s)
		_, err = p.Pull(t.Context(), req("a", "web:3"))
		wantErr(t, err, "ErrImagePull", `credentials for image "web:3": no secrets yet`, 10*time.Second)
	})
}

// A pull with one pod's credentials must not serve, fail or run beside a pull
// with another's.
func TestOtherCredentialsWaitAndLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.failAuth["bad"] = errors.New("denied")
		p := newPuller(t, Config{Auth: byPod{"a": {"bad"}, "b": {"good"}, "c": {"fine"}}}, s)
		var wg sync.WaitGroup
		errs := map[string]error{}
		for _, pod := range []string{"a", "b", "c"} {
			wg.Go(func() {
				_, err := p.Pull(t.Context(), req(pod, "web:1"))
				s.mu.Lock()
				defer s.mu.Unlock()
				errs[pod] = err
			})
			synctest.Wait()
		}
		wg.Wait()
		if errs["a"] == nil || errs["b"] != nil || errs["c"] != nil {
			t.Fatalf("errors %v", errs)
		}
		if len(s.order) != 2 { // c or b found the image present after the other's pull
			t.Fatalf("pulls %v", s.order)
		}
	})
}

// A service that panics fails one pull, not the agent, and frees its slot.
func TestPanicOfServiceIsAnError(t *testing.T) {
	p := newPuller(t, Config{MaxParallel: 1}, panicky{})
	for _, pod := range []string{"a", "b"} {
		_, err := p.Pull(t.Context(), req(pod, "web"))
		if reasoned.Reason(err, "") != ReasonPull {
			t.Fatal(err)
		}
	}
}

type panicky struct{}

func (panicky) ImageStatus(context.Context, runtime.ImageSpec) (runtime.ImageInfo, bool, error) {
	return runtime.ImageInfo{}, false, nil
}

func (panicky) PullImage(context.Context, runtime.ImagePull) (string, error) { panic("nil map") }

func TestWithDefaultTag(t *testing.T) {
	digest := "@sha256:7cc4b5aefd1d0cadf8d97d4350462ba51c694ebca145b08d7d41b41acc8db5aa"
	cases := map[string]string{
		"busybox":                 "busybox:latest",
		"busybox:1.36":            "busybox:1.36",
		"localhost:5000/a/b":      "localhost:5000/a/b:latest",
		"localhost:5000/a/b:v1":   "localhost:5000/a/b:v1",
		"busybox" + digest:        "busybox" + digest,
		"busybox:1.36" + digest:   "busybox:1.36" + digest,
		"registry.k8s.io/pause:9": "registry.k8s.io/pause:9",
	}
	for in, want := range cases {
		if got, err := WithDefaultTag(in); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "Busybox", "a b", "a:b:c", "https://a/b", "a/b::latest", ":sha-1"} {
		if got, err := WithDefaultTag(in); err == nil {
			t.Errorf("%q was taken as %q", in, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Config{}, nil); err == nil {
		t.Error("no service")
	}
	if _, err := New(Config{BackoffBase: time.Hour}, newStore(t)); err == nil {
		t.Error("base above max")
	}
}
