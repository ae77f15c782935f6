package app

import (
	"net/http"
	"net/http/pprof"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/server"
)

// routes are what nodectl and operators ask the socket for.
func routes(agent *nodefx.Agent, o *options, f *flags, loaded *config.Loaded) []server.Route {
	return []server.Route{
		show("GET /debug/parts", func() any { return agent.Parts() }),
		show("GET /debug/hooks", func() any { return agent.Groups() }),
		{Pattern: "GET /debug/graph", Handler: text(agent.Graph)},
		show("GET /configz", func() any { return configz(loaded) }),
		show("GET /flagz", func() any { return flagz(o, f) }),
		{Pattern: "GET /debug/pprof/", Handler: http.HandlerFunc(pprof.Index)},
		{Pattern: "GET /debug/pprof/profile", Handler: http.HandlerFunc(pprof.Profile)},
		{Pattern: "GET /debug/pprof/symbol", Handler: http.HandlerFunc(pprof.Symbol)},
		{Pattern: "GET /debug/pprof/trace", Handler: http.HandlerFunc(pprof.Trace)},
		{Pattern: "GET /debug/pprof/cmdline", Handler: http.HandlerFunc(pprof.Cmdline)},
	}
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

// configz is the configuration in effect, with the vendor's documents.
func configz(loaded *config.Loaded) map[string]any {
	return map[string]any{"kubeletconfig": loaded.Kubelet, "vendor": loaded.Vendor()}
}

// flagz is every flag with its value.
func flagz(o *options, f *flags) map[string]string {
	out := map[string]string{}
	for _, t := range append(f.values(), theme{set: o.flags}) {
		t.set.VisitAll(func(flag *pflag.Flag) { out[flag.Name] = flag.Value.String() })
	}
	return out
}
