package app

import (
	"net/http"
	"net/http/pprof"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/server"
)

// routes are what nodectl and operators ask the socket for, beside what
// package server shows, and the vendor's own.
func routes(agent *nodefx.Agent, s settings, seen eventLog, served *api, more []node.Ordered[server.Route]) []server.Route {
	all := agent.Routes()
	for _, r := range more {
		all = append(all, r.Value)
	}
	return append(all, []server.Route{
		show("GET /debug/parts", func() any { return agent.Parts() }),
		show("GET /debug/hooks", func() any { return agent.Groups() }),
		show("GET /debug/routes", func() any { return served.routes() }),
		seen.record.Route(),
		{Pattern: "GET /debug/graph", Handler: text(agent.Graph)},
		show("GET /configz", func() any { return configz(s) }),
		show("GET /flagz", func() any { return flagz(s) }),
		{Pattern: "GET /debug/pprof/", Handler: http.HandlerFunc(pprof.Index)},
		{Pattern: "GET /debug/pprof/profile", Handler: http.HandlerFunc(pprof.Profile)},
		{Pattern: "GET /debug/pprof/symbol", Handler: http.HandlerFunc(pprof.Symbol)},
		{Pattern: "GET /debug/pprof/trace", Handler: http.HandlerFunc(pprof.Trace)},
		{Pattern: "GET /debug/pprof/cmdline", Handler: http.HandlerFunc(pprof.Cmdline)},
	}...)
}

func show(pattern string, what func() any) server.Route {
	return server.Route{Pattern: pattern, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		server.WriteJSON(w, what())
	})}
}

func text(what func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(what())) // the client is gone: nobody to tell
	})
}

// configz is the configuration in effect, with the vendor's documents and the
// values of all feature gates.
func configz(s settings) map[string]any {
	return map[string]any{
		"kubeletconfig": masked(s.loaded.Kubelet),
		"vendor":        s.loaded.Vendor(),
		"featuregates":  s.features.All(),
	}
}

// masked hides the headers of the manifest URL, which may hold a password.
func masked(kc config.KubeletConfiguration) config.KubeletConfiguration {
	header := map[string][]string{}
	for name := range kc.StaticPodURLHeader {
		header[name] = []string{"<masked>"}
	}
	kc.StaticPodURLHeader = header
	return kc
}

// flagz is every flag with its value.
func flagz(s settings) map[string]string {
	out := map[string]string{}
	for _, t := range append(s.flags.declared, theme{set: s.vendorFlags}) {
		t.set.VisitAll(func(flag *pflag.Flag) { out[flag.Name] = flag.Value.String() })
	}
	return out
}
