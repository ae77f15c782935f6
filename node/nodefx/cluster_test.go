package nodefx_test

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/register"
	"nodekit.dev/node/server"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
)

type nobodyKnown struct{}

func (nobodyKnown) Authenticate(*http.Request) (server.User, bool, error) {
	return server.User{}, false, nil
}

func (nobodyKnown) Authorize(context.Context, server.Attributes) (server.Decision, error) {
	return server.Allow, nil
}

// TestUsers: a vendor's ways in are there for who serves the API.
func TestUsers(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	a := newAgent(t, onWorld(t, b,
		nodefx.AddAuthenticator("badge", nobodyKnown{}),
		nodefx.AddAuthorizer("scraper", func() nobodyKnown { return nobodyKnown{} }, "webhook"),
	)...)
	users := a.Users()
	if len(users.Authenticators) != 1 || users.Authenticators[0].Name != "badge" {
		t.Errorf("authenticators %+v", users.Authenticators)
	}
	if len(users.Authorizers) != 1 || users.Authorizers[0].After[0] != "webhook" {
		t.Errorf("authorizers %+v", users.Authorizers)
	}
	_, err := nodefx.New(onWorld(t, b, nodefx.AddAuthorizer("a", struct{}{}))...)
	wantError(t, err, `AddAuthorizer("a")`, "does not implement server.Authorizer")
}

// TestMember: an agent is a member where its configuration says so; a vendor's
// setters fill in its Node, and one takes the place of a stock one.
func TestMember(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	label := register.SetterFunc(func(_ context.Context, n *corev1.Node) error {
		n.Labels["edge.example/rack"] = "7"
		return nil
	})
	a := newAgent(t, onWorld(t, b,
		nodefx.Configure(func(c *wire.Config) {
			c.Cluster = wire.DefaultCluster()
			c.Cluster.API.REST = &rest.Config{Host: "https://192.0.2.1:6443"}
		}),
		nodefx.AddNodeSetter("rack", label, register.SetCapacity),
		nodefx.AddNodeSetter(register.SetImages, label),
	)...)
	m := a.Member()
	if m == nil {
		t.Fatal("no member")
	}
	names := m.Register.SetterNames()
	at := map[string]int{}
	for i, name := range names {
		at[name]++
		if name == "rack" && at[register.SetCapacity] == 0 {
			t.Errorf("rack comes at %d of %v, before %s", i, names, register.SetCapacity)
		}
	}
	if at["rack"] != 1 || at[register.SetImages] != 1 {
		t.Errorf("setters %v", names)
	}
	if sources := a.Groups().Sources; len(sources) == 0 || sources[0] != "api" {
		t.Errorf("sources %v", sources)
	}
	if alone := newAgent(t, onWorld(t, b)...); alone.Member() != nil {
		t.Error("an agent without a cluster has a member")
	}
}
