package nodefx_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/clusterfx"
	"nodekit.dev/node/handlers"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/images"
	"nodekit.dev/runtime/runtimetest"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/stats"
)

type noAuth struct{}

func (noAuth) Credentials(context.Context, images.Request) ([]runtime.ImageAuth, error) {
	return nil, nil
}

type noHandlers struct{}

func (noHandlers) RunHandler(context.Context, node.HandlerRequest) error { return nil }

type noProber struct{}

func (noProber) Watch(node.ProbeRequest) (node.ProbeResult, error) {
	return node.ProbeResult{}, nil
}
func (noProber) Rest(node.ProbeRequest)           {}
func (noProber) Forget(string)                    {}
func (noProber) Results() <-chan node.ProbeResult { return nil }

type noStats struct{}

func (noStats) Snapshot(string) []stats.Stats { return nil }
func (noStats) All() []stats.Stats            { return nil }

// Connect is to drivers of a bus.
func (bus) Connect(string, string) (grpc.ClientConnInterface, func() error, error) {
	return nil, nil, nil
}

// seamCase is one seam with its default and a replacement.
type seamCase struct {
	defaultOf string   // the provider of the default; one of node/clusterfx is there in a cluster
	runs      []string // the parts that the default runs
	replace   nodefx.Option
}

func seamCases(b *actortest.Bench) map[string]seamCase {
	return map[string]seamCase{
		"podactor.Engine": {
			"nodekit.dev/runtime/runtimefx.engine", []string{"log-rotation", "cgroup-driver"},
			nodefx.Replace[node.Engine](func() *actortest.Bench { return b }),
		},
		"podactor.Watcher": {
			"nodekit.dev/runtime/runtimefx.watcher", []string{"runtime-observe"},
			nodefx.Replace[node.Watcher](func() *actortest.Bench { return b }),
		},
		"podactor.Puller": {
			"nodekit.dev/runtime/runtimefx.puller", nil,
			nodefx.Replace[node.Puller](func() *actortest.Bench { return b }),
		},
		"images.PullAuth": {
			"nodekit.dev/runtime/runtimefx.pullAuth", nil,
			nodefx.Replace[images.PullAuth](func() noAuth { return noAuth{} }),
		},
		"podactor.Mounter": {
			"nodekit.dev/volume/volumefx.mounter", []string{"csi", "volume-content", "volume-stats"},
			nodefx.Replace[node.Mounter](func() *actortest.Mounts { return b.Mounts }),
		},
		"csi.Connector": {
			"nodekit.dev/volume/volumefx.connector", nil,
			nodefx.Replace[csi.Connector](func() bus { return bus{} }),
		},
		"wire.VolumeStats": {
			"nodekit.dev/volume/volumefx.volumeStats", []string{"volume-stats"},
			nodefx.Replace[wire.VolumeStats](func() noStats { return noStats{} }),
		},
		"podactor.Allocator": {
			"nodekit.dev/node/wire.AdmitAll", nil,
			nodefx.Replace[node.Allocator](func() node.Allocator { return wire.AdmitAll() }),
		},
		"podactor.Cgroups": {
			"nodekit.dev/resources/resourcesfx.podCgroups", nil,
			nodefx.Replace[node.Cgroups](func() node.Cgroups { return wire.NoCgroups() }),
		},
		"podactor.Specs": {
			"nodekit.dev/node/nodefx.specs", nil,
			nodefx.Replace[node.Specs](func() actortest.Specs { return actortest.Specs{} }),
		},
		"podactor.HookRunner": {
			"nodekit.dev/node/nodefx.handlerRunner", nil,
			nodefx.Replace[node.HookRunner](func() noHandlers { return noHandlers{} }),
		},
		"handlers.Execer": {
			"nodekit.dev/node/wire.Execer", nil,
			nodefx.Replace[handlers.Execer](func() worldExec { return worldExec{b.World} }),
		},
		"podactor.Prober": {
			"nodekit.dev/node/nodefx.prober", []string{"probes", "probe-results"},
			nodefx.Replace[node.Prober](func() noProber { return noProber{} }),
		},
		"podactor.Environment": {
			"nodekit.dev/node/nodefx.environmentOf", nil,
			nodefx.Replace[node.Environment](func() station { return station{} }),
		},
		"podactor.UserNamespaces": {
			"nodekit.dev/node/wire.Users", nil,
			nodefx.Replace[node.UserNamespaces](func() station { return station{} }),
		},
	}
}

// TestReplace goes through every seam: what replaces a default keeps it from
// being built and from being run, and leaves all others alone.
func TestReplace(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	cases := seamCases(b)
	maps.Copy(cases, clusterCases())
	for _, seam := range nodefx.Seams() {
		t.Run(seam, func(t *testing.T) {
			c, ok := cases[seam]
			if !ok {
				t.Fatal("this seam has no case")
			}
			join := nodefx.Options()
			if strings.Contains(c.defaultOf, "clusterfx") {
				join = clusterfx.Join(clusterConfig())
			}
			var before, with built
			stock := newAgent(t, nodefx.Config(config(t)), before.option(), join)
			replaced := newAgent(t, nodefx.Config(config(t)), with.option(), join, c.replace)
			if !before.has(c.defaultOf) {
				t.Fatalf("%s is not what builds the default; those ran: %q", c.defaultOf, before.names)
			}
			if with.has(c.defaultOf) {
				t.Errorf("%s was built in spite of the replacement", c.defaultOf)
			}
			for _, part := range stock.Parts() {
				if gone := slices.Contains(c.runs, part); gone == slices.Contains(replaced.Parts(), part) {
					t.Errorf("part %s runs: %v; want the replaced one's gone and all others there", part, !gone)
				}
			}
		})
	}
	if len(cases) != len(nodefx.Seams()) {
		t.Errorf("%d cases for %d seams", len(cases), len(nodefx.Seams()))
	}
}

// TestReplaceAll: with every part that talks to the CRI replaced there is no
// client, and so no socket.
func TestReplaceAll(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	var ran built
	a := newAgent(t, onWorld(t, b, ran.option())...)
	if ran.has("nodekit.dev/runtime/runtimefx.client") {
		t.Error("a CRI client was built")
	}
	if want := []string{"root-lock", "probes", "probe-results", "node"}; !slices.Equal(a.Parts(), want) {
		t.Errorf("parts %v, want %v", a.Parts(), want)
	}
}

// trail notes which wraps a pull passes, outermost first.
type trail struct {
	node.Puller
	name string
	note func(string)
}

func (p trail) Pull(ctx context.Context, req node.PullRequest) (node.PullResult, error) {
	p.note(p.name)
	return p.Puller.Pull(ctx, req)
}

func TestWrapsComposeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := actortest.New(t, runtimetest.Config{})
		passed := make(chan string, 10)
		wrap := func(name string, after ...string) nodefx.Option {
			return nodefx.Wrap(name, after, func(p node.Puller) node.Puller {
				return trail{p, name, func(s string) { passed <- s }}
			})
		}
		a := newAgent(t, onWorld(t, b,
			wrap("a", "c"), wrap("c"), wrap("b"),
			nodefx.AddSource("go", pods{"go", []*corev1.Pod{actortest.Pod("1", "web")}}),
		)...)
		must(t, a.Start(t.Context()))
		synctest.Wait()
		must(t, a.Stop(t.Context()))
		// b and c by name around the part, a around what it names.
		for _, want := range []string{"a", "c", "b"} {
			if got := <-passed; got != want {
				t.Errorf("passed %s, want %s", got, want)
			}
		}
		if b.Running(t, "1") != 1 {
			t.Error("the pod does not run")
		}
	})
}

// TestReplacementMayAskForTheDefault: it then is a wrap with parameters.
func TestReplacementMayAskForTheDefault(t *testing.T) {
	var ran built
	newAgent(t, nodefx.Config(config(t)), ran.option(),
		nodefx.Replace[node.Puller](func(p node.Puller, cfg wire.Config) node.Puller {
			return trail{p, cfg.NodeName, nil}
		}))
	if !ran.has("nodekit.dev/runtime/runtimefx.puller") {
		t.Error("the default was not built")
	}
}

// TestEngineSpeaksForItself: what the CRI runtime can do says nothing of an
// engine of the vendor's, so the client is not even built to ask.
func TestEngineSpeaksForItself(t *testing.T) {
	var ran built
	newAgent(t, nodefx.Config(config(t)), ran.option(),
		nodefx.Replace[node.Engine](func() *actortest.Bench { return actortest.New(t, runtimetest.Config{}) }))
	if ran.has("nodekit.dev/runtime/runtimefx.features") {
		t.Error("the CRI runtime's features were asked for")
	}
}
