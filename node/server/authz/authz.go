// Package authz decides what users may do with the node's API: everything, or
// what the API server says in a SubjectAccessReview.
//
//	webhook, err := authz.NewWebhook(authz.DefaultWebhook(), authz.Reviews(client.Authorization(), log))
//	authorizers := []node.Ordered[server.Authorizer]{{Name: "webhook", Value: webhook}}
//
// Rules for callers: a Webhook keeps answers, so make one per agent. While the
// API server can not be reached, requests that it was not asked about lately
// fail; none is let through.
package authz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/clientlog"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/internal/review"
)

// AlwaysAllow lets everybody do everything.
func AlwaysAllow() server.Authorizer { return always{} }

type always struct{}

func (always) Authorize(context.Context, server.Attributes) (server.Decision, error) {
	return server.Allow, nil
}

// Reviewer asks the API server what a user may do.
type Reviewer interface {
	// Review may block until ctx ends, and is called concurrently.
	Review(ctx context.Context, review *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error)
}

// Reviews asks by a client of authorization.k8s.io/v1. log takes what client-go says
// meanwhile; nil: nobody reads it.
func Reviews(client rest.Interface, log *slog.Logger) Reviewer { return reviews{client, log} }

type reviews struct {
	client rest.Interface
	log    *slog.Logger
}

func (r reviews) Review(ctx context.Context, ask *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	answer := &authorizationv1.SubjectAccessReview{}
	err := r.client.Post().Resource("subjectaccessreviews").Body(ask).Do(clientlog.Context(ctx, r.log)).Into(answer)
	return answer, err
}

// WebhookConfig are the settings of a Webhook.
type WebhookConfig struct {
	// AuthorizedTTL and UnauthorizedTTL are how long an answer counts that
	// allows, or that does not; 0: it is asked for each time.
	AuthorizedTTL, UnauthorizedTTL time.Duration
	// Timeout bounds what a request waits for the API server.
	Timeout time.Duration
}

// DefaultWebhook is the stock kubelet's: five minutes, thirty seconds, and ten
// seconds.
func DefaultWebhook() WebhookConfig {
	return WebhookConfig{AuthorizedTTL: 5 * time.Minute, UnauthorizedTTL: 30 * time.Second, Timeout: 10 * time.Second}
}

const (
	// maxAnswers bounds the answers kept.
	maxAnswers = 8192
	// maxCached is the size, in bytes, from which what a request asks for is
	// not kept any more, since whoever asks decides about it.
	maxCached = 10000
)

// Webhook leaves the decision to the API server. Safe for concurrent use; use
// NewWebhook.
type Webhook struct {
	cfg   WebhookConfig
	ask   Reviewer
	cache *review.Cache[authorizationv1.SubjectAccessReviewStatus]
}

// NewWebhook checks the settings.
func NewWebhook(cfg WebhookConfig, ask Reviewer) (*Webhook, error) {
	if cfg.AuthorizedTTL < 0 || cfg.UnauthorizedTTL < 0 || cfg.Timeout <= 0 {
		return nil, fmt.Errorf("authz: AuthorizedTTL %v and UnauthorizedTTL %v must not be negative and Timeout %v must be positive",
			cfg.AuthorizedTTL, cfg.UnauthorizedTTL, cfg.Timeout)
	}
	return &Webhook{cfg: cfg, ask: ask, cache: review.NewCache[authorizationv1.SubjectAccessReviewStatus](maxAnswers)}, nil
}

var errBothWays = errors.New("webhook subject access review returned both allow and deny response")

// Authorize implements server.Authorizer.
func (w *Webhook) Authorize(ctx context.Context, a server.Attributes) (server.Decision, error) {
	spec := specOf(a)
	key, err := json.Marshal(spec)
	if err != nil {
		return server.Deny, err
	}
	status, err := w.cache.Get(ctx, string(key), func(ctx context.Context) (authorizationv1.SubjectAccessReviewStatus, time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
		defer cancel()
		got, err := review.Ask(ctx, func(ctx context.Context) (*authorizationv1.SubjectAccessReview, error) {
			return w.ask.Review(ctx, &authorizationv1.SubjectAccessReview{Spec: spec})
		})
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, 0, fmt.Errorf("subject access review: %w", err)
		}
		return got.Status, w.ttl(a, got.Status.Allowed), nil
	})
	switch {
	case err != nil:
		return server.Deny, err
	case status.Allowed && status.Denied:
		return server.Deny, errBothWays
	case status.Denied:
		return server.Deny, nil
	case status.Allowed:
		return server.Allow, nil
	}
	return server.NoOpinion, nil
}

func (w *Webhook) ttl(a server.Attributes, allowed bool) time.Duration {
	switch {
	case len(a.Verb)+len(a.Node)+len(a.Subresource)+len(a.Path) >= maxCached:
		return 0
	case allowed:
		return w.cfg.AuthorizedTTL
	}
	return w.cfg.UnauthorizedTTL
}

func specOf(a server.Attributes) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: a.User.Name, UID: a.User.UID, Groups: a.User.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.Verb, Version: "v1", Resource: "nodes", Subresource: a.Subresource, Name: a.Node,
		},
	}
	for key, values := range a.User.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[key] = values
	}
	return spec
}
