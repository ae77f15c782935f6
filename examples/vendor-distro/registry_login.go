package main

import (
	"context"
	"strings"

	"nodekit.dev/node/nodefx"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/images"
)

// login has credentials for the vendor's own registry and no other.
type login struct{ Site }

func registryLogin() nodefx.Option {
	return nodefx.Replace[images.PullAuth](func(s Site) login { return login{s} })
}

// Credentials implements images.PullAuth.
func (l login) Credentials(_ context.Context, req images.Request) ([]runtime.ImageAuth, error) {
	if l.Username == "" || !strings.HasPrefix(req.Image, "mirror.vendor.example/") {
		return nil, nil
	}
	return []runtime.ImageAuth{{Username: l.Username, Password: l.Password}}, nil
}
