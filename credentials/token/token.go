package token

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/clientlog"
	"nodekit.dev/internal/tasks"
)

// Request says for whom and what a token is. Equal requests share a token.
type Request struct {
	PodUID         types.UID
	PodName        string
	Namespace      string
	ServiceAccount string
	// ServiceAccountUID, when it is set, makes the request fail where the
	// account was deleted and made anew.
	ServiceAccountUID types.UID
	// Audience is for whom the token is; empty: the API server itself.
	Audience string
	// Expiration is the life that is asked for, in whole seconds; the API
	// server may give another. 0: an hour.
	Expiration time.Duration
}

func (r Request) String() string {
	return fmt.Sprintf("service account %s/%s for pod %s, audience %q", r.Namespace, r.ServiceAccount, r.PodName, r.Audience)
}

// Token is a token as it was given.
type Token struct {
	Value string
	// Expiration is the API server's word, by its clock.
	Expiration time.Time
	// RefreshAt is when to ask again, by this machine's clock.
	RefreshAt time.Time
}

// Manager gives tokens. Use New.
type Manager struct {
	client rest.Interface
	log    *slog.Logger

	mu      sync.Mutex
	entries map[Request]*entry
	swept   time.Time
}

const (
	defaultLife = time.Hour
	// sweepEvery is how often expired tokens are dropped.
	sweepEvery = time.Minute
	// While an old token is good, asking for a new one may neither hold up the
	// caller nor be repeated at once.
	refreshTimeout = 10 * time.Second
	refreshRetry   = 30 * time.Second
	// The Node authorizer learns of a pod's binding a little after the node
	// does: a pod's first token is asked for again after firstWait and its
	// doubles, for so long as forbiddenPatience.
	firstWait         = 50 * time.Millisecond
	forbiddenPatience = 2 * time.Second
)

// New makes a manager. client is the API server's core group; nil: every
// Token is an error. A nil log is silence.
func New(client rest.Interface, log *slog.Logger) *Manager {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Manager{client: client, log: log, entries: map[Request]*entry{}}
}

// entry is one token. busy is held by who asks for it; the rest is under mu of
// the manager.
type entry struct {
	busy    chan struct{}
	token   Token
	expires time.Time // by this machine's clock; zero: no token yet
	retryAt time.Time // after a refresh that failed
	// patience is until when a refusal may be over in a moment; zero: none came
	// yet. Who holds busy has it.
	patience time.Time
}

func (e *entry) valid(now time.Time) bool { return now.Before(e.expires) }
func (e *entry) fresh(now time.Time) bool {
	return e.valid(now) && (now.Before(e.token.RefreshAt) || now.Before(e.retryAt))
}

// Token returns a token that is good for a while. It blocks until the API
// server answered or ctx ends, and not at all where a fresh one is at hand.
// While a pod is new, it waits up to two seconds for an API server that forbids
// the token because it does not know yet that the pod runs here.
// The error wraps the API server's, so that apimachinery's errors.IsNotFound
// and its siblings tell what it was.
func (m *Manager) Token(ctx context.Context, req Request) (Token, error) {
	if m.client == nil {
		return Token{}, fmt.Errorf("token of %s: there is no API server to ask", req)
	}
	e, token, fresh := m.look(req)
	if fresh {
		return token, nil
	}
	ctx = clientlog.Context(ctx, m.log)
	select {
	case e.busy <- struct{}{}:
		defer func() { <-e.busy }()
	case <-ctx.Done():
		return Token{}, fmt.Errorf("token of %s: %w", req, ctx.Err())
	}
	if _, token, fresh := m.look(req); fresh { // another call got it
		return token, nil
	}
	return m.renew(ctx, req, e)
}

// look returns the entry of a request, and its token if that is fresh.
func (m *Manager) look(req Request) (*entry, Token, bool) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(now)
	e := m.entries[req]
	if e == nil {
		e = &entry{busy: make(chan struct{}, 1)}
		m.entries[req] = e
	}
	return e, e.token, e.fresh(now)
}

func (m *Manager) renew(ctx context.Context, req Request, e *entry) (Token, error) {
	m.mu.Lock()
	old, expires := e.token, e.expires
	m.mu.Unlock()
	ask := e.patiently(m.ask)
	if time.Now().Before(expires) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, refreshTimeout)
		defer cancel()
		ask = m.ask
	}
	token, life, err := ask(ctx, req)
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		token.RefreshAt = refreshAt(now, life, rand.Float64())
		e.token, e.expires, e.retryAt = token, now.Add(life), time.Time{}
		return token, nil
	case now.Before(expires):
		m.log.Warn("could not refresh a service account token; the old one is still good", "pod", req.PodName, "namespace", req.Namespace,
			"uid", req.PodUID, "serviceAccount", req.ServiceAccount, "audience", req.Audience, "expires", expires, "err", err)
		e.retryAt = now.Add(refreshRetry)
		old.RefreshAt = e.retryAt
		return old, nil
	}
	return Token{}, fmt.Errorf("token of %s: %w", req, err)
}

type asker func(context.Context, Request) (Token, time.Duration, error)

// patiently asks for a pod that the API server may not know to be here yet. Who
// asks for one token shares the patience: what stays forbidden delays nobody
// twice.
func (e *entry) patiently(ask asker) asker {
	return func(ctx context.Context, req Request) (Token, time.Duration, error) {
		for wait := firstWait; ; wait *= 2 {
			token, life, err := ask(ctx, req)
			if !apierrors.IsForbidden(err) {
				return token, life, err
			}
			now := time.Now()
			if e.patience.IsZero() {
				e.patience = now.Add(forbiddenPatience)
			}
			left := e.patience.Sub(now)
			if left <= 0 || tasks.Pause(ctx, min(wait, left)) != nil {
				return Token{}, 0, err
			}
		}
	}
}

// ask gets a new token, and how long it lives.
func (m *Manager) ask(ctx context.Context, req Request) (Token, time.Duration, error) {
	life := req.Expiration
	if life <= 0 {
		life = defaultLife
	}
	seconds := int64(life / time.Second)
	body := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: req.PodName, UID: req.PodUID},
	}}
	body.UID = req.ServiceAccountUID
	if req.Audience != "" {
		body.Spec.Audiences = []string{req.Audience}
	}
	var got authenticationv1.TokenRequest
	err := m.client.Post().Namespace(req.Namespace).Resource("serviceaccounts").Name(req.ServiceAccount).SubResource("token").
		Body(body).Do(ctx).Into(&got)
	switch {
	case err != nil:
		return Token{}, 0, err
	case got.Status.Token == "":
		return Token{}, 0, errors.New("the API server gave an empty token")
	case got.Spec.ExpirationSeconds != nil:
		// The life counts from now by our clock, which may differ from the API
		// server's.
		life = time.Duration(*got.Spec.ExpirationSeconds) * time.Second
	}
	return Token{Value: got.Status.Token, Expiration: got.Status.ExpirationTimestamp.Time}, life, nil
}

// Forget drops the tokens of a pod.
func (m *Manager) Forget(pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for req := range m.entries {
		if req.PodUID == pod {
			delete(m.entries, req)
		}
	}
}

// sweep drops what expired. It is called with the lock.
func (m *Manager) sweep(now time.Time) {
	if now.Sub(m.swept) < sweepEvery {
		return
	}
	m.swept = now
	for req, e := range m.entries {
		if !e.valid(now) && len(e.busy) == 0 {
			delete(m.entries, req)
		}
	}
}
