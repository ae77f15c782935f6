package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"nodekit.dev/node/nodefx"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// seeded is the stock emptyDir for volumes called site-*, with the site's name
// in it before the first container starts.
type seeded struct {
	plugins.EmptyDir
	Site
}

func seededVolume() nodefx.Option {
	return nodefx.AddVolumePlugin("seeded", func(s Site) seeded { return seeded{Site: s} })
}

// Name, Supports and Mount implement volume.Plugin.
func (seeded) Name() string { return "vendor.example/seeded" }
func (p seeded) Supports(s volume.Source) bool {
	return p.EmptyDir.Supports(s) && strings.HasPrefix(s.Volume.Name, "site-")
}

func (p seeded) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	res, err := p.EmptyDir.Mount(ctx, req)
	if err == nil {
		err = os.WriteFile(filepath.Join(res.HostPath, "site"), []byte(p.Site.Name), 0o644) //nolint:gosec // containers of any user read it
	}
	return res, err
}
