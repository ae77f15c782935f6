package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/clusterfx"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/kubeletapi"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
)

// SocketName is the unix socket that nodectl talks to, in the root directory.
const SocketName = "nodekit.sock"

// build makes the agent and the server that shows it.
func build(ctx context.Context, s settings, log *slog.Logger) (*built, error) {
	kc := &s.loaded.Kubelet
	cfg, member, err := translate(ctx, s, log)
	if err != nil {
		return nil, err
	}
	followCgroupDriver(ctx, &cfg, log)
	var agent *nodefx.Agent
	meters, err := newMeters(s, cfg.NodeName, func() []node.PodView { return agent.Node().Pods() })
	if err != nil {
		return nil, err
	}
	meters.observe(&cfg)
	seen := eventLog{log: log, record: server.NewEvents(keptEvents)}
	ends := kubeletapi.NewEnds()
	opts := []nodefx.Option{nodefx.Config(cfg), nodefx.AddEventSink(seen), nodefx.AddStatusSink(ends), meters.shown.populate()}
	opts = append(opts, sources(cfg, s, seen)...)
	var connection *cluster.Connection // nil: the agent stands alone
	if member != nil {
		meters.observeCluster(member)
		opts = append(opts, clusterfx.Join(*member), nodefx.Populate(&connection))
	} else {
		warnAlone(log, s.loaded)
	}
	for _, more := range s.agent {
		extra, err := more(s.loaded)
		if err != nil {
			return nil, err
		}
		opts = append(opts, extra...)
	}
	agent, err = nodefx.New(opts...)
	if err != nil {
		return nil, err
	}
	api, err := newAPI(apiParts{s, cfg, agent, connection, ends, meters}, log)
	if err != nil {
		return nil, err
	}
	srv, err := server.New(server.Config{
		HealthzAddress: healthzAddress(kc),
		Socket:         filepath.Join(cfg.RootDir, SocketName),
	}, agent.Node(), log, routes(agent, s, seen, api, meters.routes(log))...)
	if err != nil {
		return nil, err
	}
	return &built{Agent: agent, serve: srv.Run, api: api, healthy: answering(agent)}, nil
}

// hungAfter is how long the agent may take to list its pods before it is not
// healthy; the stock kubelet gives its sync loop as long.
const hungAfter = 5 * time.Minute

// answering is what the watchdog asks: whether the agent still answers.
func answering(agent *nodefx.Agent) func(context.Context) error {
	check := server.Responding("node", hungAfter, func() { agent.Node().Pods() })
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz", nil)
		if err != nil {
			return err
		}
		return check.Check(r)
	}
}

// healthzAddress is empty where healthzPort 0 turns the endpoint off.
func healthzAddress(kc *config.KubeletConfiguration) string {
	if *kc.HealthzPort == 0 {
		return ""
	}
	return net.JoinHostPort(kc.HealthzBindAddress, strconv.Itoa(int(*kc.HealthzPort)))
}

// refuse is what static pods may not have: as with the stock kubelet, references
// to objects of the API server, but for those that are at hand without one.
func refuse(s settings) func(*corev1.Pod) error {
	return source.RefuseReferences(s.flags.localObjects != "" || s.references)
}

// sources are the places that name static pods.
func sources(cfg wire.Config, s settings, seen eventLog) []nodefx.Option {
	kc := &s.loaded.Kubelet
	common := func(w node.Watcher) source.Config {
		return source.Config{
			NodeName: cfg.NodeName, Adopter: source.AdoptFrom(w.List), Refuse: refuse(s), Log: cfg.Log,
			Observer: source.Observer{Problem: seen.problem},
		}
	}
	var opts []nodefx.Option
	if kc.StaticPodPath != "" {
		opts = append(opts, nodefx.AddSource("file", func(w node.Watcher) (*source.Dir, error) {
			return source.NewDir(source.DirConfig{
				Config: common(w), Path: kc.StaticPodPath, Period: kc.FileCheckFrequency.Duration,
			})
		}))
	}
	if kc.StaticPodURL != "" {
		opts = append(opts, nodefx.AddSource("http", func(w node.Watcher) (*source.HTTP, error) {
			return source.NewHTTP(source.HTTPConfig{
				Config: common(w), URL: kc.StaticPodURL,
				Header: kc.StaticPodURLHeader, Period: kc.HTTPCheckFrequency.Duration,
			})
		}))
	}
	return opts
}
