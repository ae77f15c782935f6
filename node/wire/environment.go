package wire

import (
	"context"

	"nodekit.dev/node"
	"nodekit.dev/resources/userns"
	"nodekit.dev/runtime"
)

// Users gives pods with hostUsers: false users of their own.
func Users(cfg Config) (node.UserNamespaces, error) {
	ranges, err := userns.New(cfg.Users, cfg.Log.With("part", "users"))
	if err != nil {
		return nil, err
	}
	return userNamespaces{ranges}, nil
}

type userNamespaces struct{ ranges *userns.Ranges }

func (u userNamespaces) UserNamespace(ctx context.Context, req node.UserNamespaceRequest) (node.UserNamespaceResult, error) {
	ids, err := u.ranges.Range(ctx, req.UID)
	all := []runtime.IDMapping{{HostID: ids.First, Length: ids.Length}}
	return node.UserNamespaceResult{Namespace: runtime.UserNamespace{UIDs: all, GIDs: all}}, err
}

func (u userNamespaces) Release(_ context.Context, uid string) error { return u.ranges.Release(uid) }
