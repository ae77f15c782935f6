package app

import (
	"log/slog"
	"net"
	"path/filepath"
	"strconv"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/server"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
)

// socketName is the unix socket that nodectl talks to, in the root directory.
const socketName = "nodekit.sock"

// build makes the agent and the server that shows it.
func build(o *options, f *flags, loaded *config.Loaded, features config.Features, log *slog.Logger) (*built, error) {
	kc := &loaded.Kubelet
	cfg, err := translate(f, kc, features, log)
	if err != nil {
		return nil, err
	}
	opts := []nodefx.Option{nodefx.Config(cfg), nodefx.AddEventSink(eventLog{log})}
	opts = append(opts, sources(cfg, kc)...)
	for _, more := range o.agent {
		extra, err := more(loaded)
		if err != nil {
			return nil, err
		}
		opts = append(opts, extra...)
	}
	agent, err := nodefx.New(opts...)
	if err != nil {
		return nil, err
	}
	srv, err := server.New(server.Config{
		HealthzAddress: healthzAddress(kc),
		Socket:         filepath.Join(cfg.RootDir, socketName),
	}, agent.Node(), log, routes(agent, o, f, loaded)...)
	if err != nil {
		return nil, err
	}
	return &built{Agent: agent, serve: srv.Run}, nil
}

// healthzAddress is empty where healthzPort 0 turns the endpoint off.
func healthzAddress(kc *config.KubeletConfiguration) string {
	if *kc.HealthzPort == 0 {
		return ""
	}
	return net.JoinHostPort(kc.HealthzBindAddress, strconv.Itoa(int(*kc.HealthzPort)))
}

// sources are the places that name static pods.
func sources(cfg wire.Config, kc *config.KubeletConfiguration) []nodefx.Option {
	var opts []nodefx.Option
	if kc.StaticPodPath != "" {
		opts = append(opts, nodefx.AddSource("file", func(w node.Watcher) (*source.Dir, error) {
			return source.NewDir(source.DirConfig{
				Config: sourceConfig(cfg, w), Path: kc.StaticPodPath, Period: kc.FileCheckFrequency.Duration,
			})
		}))
	}
	if kc.StaticPodURL != "" {
		opts = append(opts, nodefx.AddSource("http", func(w node.Watcher) (*source.HTTP, error) {
			return source.NewHTTP(source.HTTPConfig{
				Config: sourceConfig(cfg, w), URL: kc.StaticPodURL,
				Header: kc.StaticPodURLHeader, Period: kc.HTTPCheckFrequency.Duration,
			})
		}))
	}
	return opts
}

func sourceConfig(cfg wire.Config, w node.Watcher) source.Config {
	return source.Config{NodeName: cfg.NodeName, Adopter: source.AdoptFrom(w.List), Log: cfg.Log}
}

// eventLog writes the events of pods to the log, as there is no API server to
// take them.
type eventLog struct{ log *slog.Logger }

func (e eventLog) PodEvent(ev node.PodEvent) {
	level := slog.LevelInfo
	if ev.Type == lifecycle.EventWarning {
		level = slog.LevelWarn
	}
	e.log.Log(nil, level, "Event occurred", "pod", ev.Namespace+"/"+ev.Name, "uid", ev.UID, //nolint:staticcheck // slog takes no context here
		"type", string(ev.Type), "reason", ev.Reason, "message", ev.Message, "container", ev.Container)
}

