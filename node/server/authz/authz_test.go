package authz_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/clientlog/clientlogtest"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/authz"
)

// reviewer is an API server that answers what it is told to.
type reviewer struct {
	calls  int
	got    authorizationv1.SubjectAccessReviewSpec
	status authorizationv1.SubjectAccessReviewStatus
	err    error
}

func (r *reviewer) Review(_ context.Context, ask *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
	r.calls++
	r.got = ask.Spec
	if r.err != nil {
		return nil, r.err
	}
	answer := ask.DeepCopy()
	answer.Status = r.status
	return answer, nil
}

func attributes() server.Attributes {
	return server.Attributes{
		User: server.User{Name: "jane", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
		Verb: "create", Node: "node-1", Subresource: "proxy", Path: "/exec/a/b/c",
	}
}

func webhook(t *testing.T, api *reviewer) *authz.Webhook {
	t.Helper()
	w, err := authz.NewWebhook(authz.DefaultWebhook(), api)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWebhook(t *testing.T) {
	for name, row := range map[string]struct {
		status authorizationv1.SubjectAccessReviewStatus
		err    error
		want   server.Decision
		wrong  string
	}{
		"allowed":    {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil, server.Allow, ""},
		"denied":     {authorizationv1.SubjectAccessReviewStatus{Denied: true}, nil, server.Deny, ""},
		"no opinion": {authorizationv1.SubjectAccessReviewStatus{}, nil, server.NoOpinion, ""},
		"both":       {authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil, server.Deny, "both allow and deny"},
		"away":       {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, errors.New("away"), server.Deny, "subject access review: away"},
	} {
		api := &reviewer{status: row.status, err: row.err}
		got, err := webhook(t, api).Authorize(t.Context(), attributes())
		if got != row.want || (row.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		want := authorizationv1.SubjectAccessReviewSpec{
			User: "jane", UID: "u", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Version: "v1", Resource: "nodes", Subresource: "proxy", Name: "node-1"},
		}
		if !reflect.DeepEqual(api.got, want) {
			t.Errorf("%s: asked %+v, want %+v", name, api.got, want)
		}
	}
}

// TestWebhookKeeps: yes for five minutes, no for half a minute, and not for
// another user or verb.
func TestWebhookKeeps(t *testing.T) {
	for _, row := range []struct {
		allowed bool
		ttl     time.Duration
	}{{true, 5 * time.Minute}, {false, 30 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			api := &reviewer{status: authorizationv1.SubjectAccessReviewStatus{Allowed: row.allowed}}
			w := webhook(t, api)
			ask := func(change func(*server.Attributes), want int) {
				t.Helper()
				a := attributes()
				change(&a)
				if _, err := w.Authorize(t.Context(), a); err != nil || api.calls != want {
					t.Errorf("%v, %d calls, want %d", err, api.calls, want)
				}
			}
			same := func(*server.Attributes) {}
			ask(same, 1)
			another := func(a *server.Attributes) { a.Path = "/attach/a/b/c" } // the same question
			ask(another, 1)
			time.Sleep(row.ttl - time.Nanosecond) // fake time
			ask(same, 1)
			ask(func(a *server.Attributes) { a.User.Name = "joe" }, 2)
			ask(func(a *server.Attributes) { a.User.Groups = nil }, 3)
			ask(func(a *server.Attributes) { a.Verb = "get" }, 4)
			ask(func(a *server.Attributes) { a.Subresource = "log" }, 5)
			time.Sleep(time.Nanosecond) // fake time
			ask(same, 6)
			long := func(a *server.Attributes) { a.User.Name, a.Path = "long", strings.Repeat("x", 10000) }
			ask(long, 7)
			ask(long, 8) // who asks for much can not fill the memory
		})
	}
}

func TestNewWebhookRefuses(t *testing.T) {
	for _, cfg := range []authz.WebhookConfig{{}, {AuthorizedTTL: -1, Timeout: 1}, {UnauthorizedTTL: -1, Timeout: 1}} {
		if _, err := authz.NewWebhook(cfg, &reviewer{}); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

func Example() {
	everybody := authz.AlwaysAllow()
	decision, err := everybody.Authorize(context.Background(), server.Attributes{Verb: "get", Subresource: "log"})
	fmt.Println(decision, err)
	// Output:
	// Allow <nil>
}

func TestLogsOfClientGoStayWithTheirAgent(t *testing.T) {
	clientlogtest.Separate(t, authorizationv1.SchemeGroupVersion, authorizationv1.AddToScheme, func(ctx context.Context, client rest.Interface, log *slog.Logger) {
		_, _ = authz.Reviews(client, log).Review(ctx, &authorizationv1.SubjectAccessReview{}) // refused
	})
}
