package wire

import (
	"log/slog"
	"testing"

	"nodekit.dev/node"
	"nodekit.dev/resources/userns"
	"nodekit.dev/runtime"
)

func TestUserNamespaces(t *testing.T) {
	u, err := Users(Config{Users: userns.Config{PodsDir: t.TempDir()}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var first runtime.UserNamespace
	for _, uid := range []string{"a", "a", "b"} {
		got, err := u.UserNamespace(t.Context(), node.UserNamespaceRequest{UID: uid})
		if err != nil || len(got.Namespace.UIDs) != 1 || got.Namespace.UIDs[0] != got.Namespace.GIDs[0] || got.Namespace.UIDs[0].ContainerID != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		switch {
		case first.UIDs == nil:
			first = got.Namespace
		case (uid == "a") != (got.Namespace.UIDs[0] == first.UIDs[0]):
			t.Errorf("%s has %+v, a had %+v", uid, got.Namespace, first)
		}
	}
	if err := u.Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if got, err := u.UserNamespace(t.Context(), node.UserNamespaceRequest{UID: "c"}); err != nil || got.Namespace.UIDs[0] != first.UIDs[0] {
		t.Errorf("c has %+v, %v; want what a gave back", got, err)
	}
}
