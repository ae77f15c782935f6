package token

import (
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

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/clientlog/clientlogtest"
	"nodekit.dev/internal/kubeclient/kubeclienttest"
)

// fakeAPI gives tokens with increasing numbers, in this process: no sockets,
// so that time can be fake.
type fakeAPI struct {
	t       testing.TB
	mu      sync.Mutex
	given   int
	seen    []*authenticationv1.TokenRequest
	paths   []string
	fail    error         // instead of an answer
	blocked chan struct{} // not nil: answers wait for it or the context
	life    time.Duration // 0: what was asked for
	known   time.Time     // before it, the pod is not known to be on this node
}

func (f *fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	blocked, fail := f.blocked, f.fail
	f.mu.Unlock()
	if blocked != nil {
		select {
		case <-blocked:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if fail != nil {
		return nil, fail
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var req authenticationv1.TokenRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		f.t.Error(err)
	}
	f.seen, f.paths = append(f.seen, req.DeepCopy()), append(f.paths, r.Method+" "+r.URL.Path)
	if strings.Contains(r.URL.Path, "/gone/") {
		return f.answer(http.StatusNotFound, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), "gone").Status())
	}
	if time.Now().Before(f.known) {
		return f.answer(http.StatusForbidden, apierrors.NewForbidden(corev1.Resource("serviceaccounts"), "default", errors.New("no relationship found")).Status())
	}
	f.given++
	if f.life > 0 {
		seconds := int64(f.life / time.Second)
		req.Spec.ExpirationSeconds = &seconds
	}
	req.Status.Token = fmt.Sprint("token-", f.given)
	req.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(*req.Spec.ExpirationSeconds) * time.Second))
	return f.answer(http.StatusCreated, req)
}

func (f *fakeAPI) answer(code int, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text)))}, err
}

func (f *fakeAPI) manager() *Manager {
	client := kubeclienttest.Client(corev1.SchemeGroupVersion, f, corev1.AddToScheme, authenticationv1.AddToScheme)
	return New(client, nil)
}

func (f *fakeAPI) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

var web = Request{PodUID: "uid-1", PodName: "web", Namespace: "shop", ServiceAccount: "default", Audience: "vault", Expiration: time.Hour}

func mustGet(t *testing.T, m *Manager, req Request) Token {
	t.Helper()
	token, err := m.Token(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestRequestIsBoundToThePod(t *testing.T) {
	f := &fakeAPI{t: t}
	req := web
	req.ServiceAccountUID = "sa-uid"
	token := mustGet(t, f.manager(), req)
	if token.Value != "token-1" || token.Expiration.IsZero() || token.RefreshAt.IsZero() {
		t.Fatalf("token %+v", token)
	}
	sent := f.seen[0]
	ref := sent.Spec.BoundObjectRef
	if f.paths[0] != "POST /api/v1/namespaces/shop/serviceaccounts/default/token" || sent.UID != "sa-uid" ||
		*ref != (authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "uid-1"}) ||
		len(sent.Spec.Audiences) != 1 || sent.Spec.Audiences[0] != "vault" || *sent.Spec.ExpirationSeconds != 3600 {
		t.Fatalf("%s %+v, %+v", f.paths[0], sent.Spec, ref)
	}
}

func TestTokensAreKeptAndRefreshed(t *testing.T) {
	for _, c := range []struct {
		name string
		ask  time.Duration
		give time.Duration // 0: as asked
		kept time.Duration // at least
		new  time.Duration // at most
	}{
		{"80 % of an hour", time.Hour, 0, 48*time.Minute - maxJitter, 48 * time.Minute},
		{"a day at most", 30 * 24 * time.Hour, 0, 24*time.Hour - maxJitter, 24 * time.Hour},
		{"the server's life counts", time.Hour, 10 * time.Minute, 8*time.Minute - maxJitter, 8 * time.Minute},
		{"an hour by default", 0, 0, 48*time.Minute - maxJitter, 48 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeAPI{t: t, life: c.give}
				m, req := f.manager(), web
				req.Expiration = c.ask
				first := mustGet(t, m, req)
				time.Sleep(c.kept - time.Second) // fake time
				if again := mustGet(t, m, req); again != first {
					t.Fatalf("another token after %v: %v, %v", c.kept, first, again)
				}
				time.Sleep(c.new - c.kept + time.Second) // fake time
				if again := mustGet(t, m, req); again.Value != "token-2" {
					t.Fatalf("%s after %v", again.Value, c.new)
				}
			})
		})
	}
}

func TestRefreshThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{t: t}
		m := f.manager()
		first := mustGet(t, m, web)
		time.Sleep(50 * time.Minute) // fake time
		f.set(func() { f.blocked = make(chan struct{}) })

		start := time.Now()
		old := mustGet(t, m, web)
		if took := time.Since(start); old.Value != first.Value || took != refreshTimeout {
			t.Fatalf("%s after %v", old.Value, took)
		}
		start = time.Now()
		if mustGet(t, m, web); time.Since(start) != 0 {
			t.Fatal("asked again at once")
		}
		if want := start.Add(refreshRetry); !old.RefreshAt.Equal(want) {
			t.Fatalf("ask again at %v, want %v", old.RefreshAt, want)
		}

		time.Sleep(11 * time.Minute) // fake time: now it expired
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if token, err := m.Token(ctx, web); !errors.Is(err, context.DeadlineExceeded) || token.Value != "" {
			t.Fatalf("expired: %+v, %v", token, err)
		}
		f.set(func() { f.blocked = nil })
		if token := mustGet(t, m, web); token.Value != "token-2" {
			t.Fatalf("after the API server came back: %s", token.Value)
		}
	})
}

// The Node authorizer learns of a pod's binding a little after the node.
func TestFirstTokenWaitsForTheAuthorizer(t *testing.T) {
	for _, c := range []struct {
		known, took time.Duration
		calls       int
	}{
		{40 * time.Millisecond, 50 * time.Millisecond, 2},
		{300 * time.Millisecond, 350 * time.Millisecond, 4},
		{1900 * time.Millisecond, 2 * time.Second, 7},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			f := &fakeAPI{t: t, known: start.Add(c.known)}
			token := mustGet(t, f.manager(), web)
			if took := time.Since(start); token.Value != "token-1" || took != c.took || len(f.seen) != c.calls {
				t.Errorf("known after %v: %s after %v and %d calls", c.known, token.Value, took, len(f.seen))
			}
		})
	}
}

func TestTokenThatStaysForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fakeAPI{t: t, known: start.Add(time.Hour)}
		m := f.manager()
		forbidden := func(ctx context.Context, want time.Duration) {
			t.Helper()
			before := time.Now()
			_, err := m.Token(ctx, web)
			if took := time.Since(before); !apierrors.IsForbidden(err) || took != want {
				t.Errorf("%v after %v, want %v", err, took, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		forbidden(ctx, 500*time.Millisecond)
		forbidden(t.Context(), 1500*time.Millisecond) // the rest of the patience
		forbidden(t.Context(), 0)                     // and no more of it
	})
}

// Where an old token is still good, nobody waits for a new one.
func TestForbiddenRefreshDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{t: t}
		m := f.manager()
		first := mustGet(t, m, web)
		time.Sleep(50 * time.Minute) // fake time
		f.set(func() { f.known = time.Now().Add(time.Hour) })
		before := time.Now()
		if again := mustGet(t, m, web); again.Value != first.Value || time.Since(before) != 0 {
			t.Errorf("%s after %v", again.Value, time.Since(before))
		}
	})
}

func TestConcurrentCallsShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{t: t, blocked: make(chan struct{})}
		m := f.manager()
		// The one whose context ends first must not take the others along.
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for i := range 10 {
			ctx := t.Context()
			if i == 0 {
				ctx = short
			}
			wg.Go(func() {
				token, err := m.Token(ctx, web)
				if i == 0 && err == nil || i != 0 && (err != nil || token.Value != "token-1") {
					t.Errorf("call %d: %+v, %v", i, token, err)
				}
			})
		}
		time.Sleep(2 * time.Second) // fake time
		close(f.blocked)
		wg.Wait()
		if len(f.seen) != 1 {
			t.Fatalf("%d requests", len(f.seen))
		}
	})
}

func TestForgetAndSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{t: t}
		m := f.manager()
		other := web
		other.PodUID, other.Audience = "uid-2", ""
		mustGet(t, m, web)
		mustGet(t, m, other)
		m.Forget("uid-1")
		if again := mustGet(t, m, web); again.Value != "token-3" {
			t.Fatalf("a forgotten token came back: %s", again.Value)
		}
		if again := mustGet(t, m, other); again.Value != "token-2" || len(f.seen[1].Spec.Audiences) != 0 {
			t.Fatalf("the other pod's token: %s, audiences %v", again.Value, f.seen[1].Spec.Audiences)
		}
		time.Sleep(2 * time.Hour) // fake time
		mustGet(t, m, other)
		if len(m.entries) != 1 {
			t.Fatalf("%d tokens kept, want 1", len(m.entries))
		}
	})
}

func TestErrors(t *testing.T) {
	f := &fakeAPI{t: t}
	req := web
	req.ServiceAccount = "gone"
	if _, err := f.manager().Token(t.Context(), req); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "shop/gone") || !strings.Contains(err.Error(), "web") {
		t.Fatalf("error %v", err)
	}
	if _, err := New(nil, nil).Token(t.Context(), web); err == nil || !strings.Contains(err.Error(), "no API server") {
		t.Fatalf("error %v", err)
	}
	f.life = 0
	f.fail = errors.New("refused")
	if _, err := f.manager().Token(t.Context(), web); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Fatalf("error %v", err)
	}
}

func TestRefreshAt(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		life   time.Duration
		random float64
		want   time.Duration
	}{
		{time.Hour, 0, 48 * time.Minute},
		{time.Hour, 1, 48*time.Minute - 10*time.Second},
		{48 * time.Hour, 0, 24 * time.Hour},
		{5 * time.Second, 1, 0},
	} {
		if got := refreshAt(now, c.life, c.random).Sub(now); got != c.want {
			t.Errorf("life %v, random %v: %v, want %v", c.life, c.random, got, c.want)
		}
	}
}

func Example() {
	f := &fakeAPI{}
	m := f.manager()
	ctx := context.Background()
	req := Request{PodUID: types.UID("1"), PodName: "web", Namespace: "shop", ServiceAccount: "default"}
	first, err := m.Token(ctx, req)
	again, _ := m.Token(ctx, req)
	m.Forget("1")
	last, _ := m.Token(ctx, req)
	fmt.Println(first.Value, again.Value, last.Value, err)
	// Output: token-1 token-1 token-2 <nil>
}

func TestLogsOfClientGoStayWithTheirAgent(t *testing.T) {
	clientlogtest.Separate(t, corev1.SchemeGroupVersion, authenticationv1.AddToScheme, func(ctx context.Context, client rest.Interface, log *slog.Logger) {
		_, _ = New(client, log).Token(ctx, web) // refused
	})
}
