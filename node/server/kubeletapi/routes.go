package kubeletapi

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/nodelogs"
	"nodekit.dev/node/server/streams"
)

// api is what the handlers share.
type api struct {
	cfg     Config
	parts   Parts
	log     *slog.Logger
	streams *streams.Proxy
}

// routes is a group that is being made.
type routes []node.Ordered[server.Route]

func (r *routes) add(name string, route server.Route) {
	*r = append(*r, node.Ordered[server.Route]{Name: name, Value: route})
}

func (r *routes) addFunc(name, pattern string, handle http.HandlerFunc) {
	r.add(name, server.Route{Pattern: pattern, Handler: handle})
}

// Routes are the stock routes. A vendor's replace them by name; see
// server.Merge.
func Routes(cfg Config, parts Parts) ([]node.Ordered[server.Route], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := parts.validate(); err != nil {
		return nil, err
	}
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	if parts.HostCommands == nil {
		parts.HostCommands = nodelogs.Commands()
	}
	a := &api{cfg: cfg, parts: parts, log: parts.Log, streams: streams.New(streams.Config{
		IdleTimeout: cfg.StreamIdleTimeout, Translate: cfg.TranslateWebSockets, WebSocket: parts.WebSocket,
	}, parts.Log)}
	health, err := server.Healthz(withStock(parts), parts.Log)
	if err != nil {
		return nil, err
	}
	all := routes(health)
	all.add("pods", server.Route{Pattern: "GET /pods", Handler: http.HandlerFunc(a.pods), ReadOnly: true})
	if !cfg.Debugging {
		all.disabled()
		return all, nil
	}
	a.addContainers(&all)
	if err := a.addNodeLogs(&all); err != nil {
		return nil, err
	}
	a.addDebug(&all)
	a.addZPages(&all)
	return all, nil
}

// The stock kubelet's patience with what may hang.
const (
	syncLoopLimit = 5 * time.Minute
	logLimit      = 2 * time.Minute
)

// withStock adds the stock health checks that nobody replaced.
func withStock(parts Parts) []node.Ordered[server.Check] {
	flush := parts.FlushLogs
	if flush == nil {
		flush = func() { parts.Log.Debug("health check of the log") }
	}
	checks := slices.Clone(parts.Checks)
	for _, stock := range []node.Ordered[server.Check]{
		{Name: "log", Value: server.Responding("logging", logLimit, flush)},
		{Name: "syncloop", Value: server.Responding("sync Loop", syncLoopLimit, func() { parts.Pods.Pods() })},
	} {
		if !slices.ContainsFunc(checks, func(c node.Ordered[server.Check]) bool { return c.Name == stock.Name }) {
			checks = append(checks, stock)
		}
	}
	return checks
}

// disabled answers where the debugging handlers would be.
func (r *routes) disabled() {
	for _, path := range []string{
		"/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/", "/runningpods/", "/debug/pprof/", "/logs/",
	} {
		r.add(strings.ToLower(strings.Trim(strings.ReplaceAll(path, "/", "-"), "-")), refuse(path, "Debug endpoints are disabled."))
	}
}

func refuse(path, why string) server.Route {
	return server.Route{Pattern: path, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, why, http.StatusMethodNotAllowed)
	})}
}

// addContainers adds what is about containers. Streams come by GET from
// WebSocket clients and by POST from those of SPDY.
func (a *api) addContainers(all *routes) {
	all.addFunc("runningpods", "GET /runningpods/{$}", a.runningPods)
	if a.parts.Logs != nil {
		all.add("containerlogs", server.Route{
			Pattern: "GET /containerLogs/{namespace}/{pod}/{container}", Handler: http.HandlerFunc(a.containerLogs), Streaming: true,
		})
	}
	for _, s := range []struct {
		name, path string
		handle     http.HandlerFunc
	}{
		{"exec", "/exec/{namespace}/{pod}/{container}", a.exec},
		{"exec-uid", "/exec/{namespace}/{pod}/{uid}/{container}", a.exec},
		{"attach", "/attach/{namespace}/{pod}/{container}", a.attach},
		{"attach-uid", "/attach/{namespace}/{pod}/{uid}/{container}", a.attach},
		{"portforward", "/portForward/{namespace}/{pod}", a.portForward},
		{"portforward-uid", "/portForward/{namespace}/{pod}/{uid}", a.portForward},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			all.add(s.name+"-"+strings.ToLower(method), server.Route{Pattern: method + " " + s.path, Handler: s.handle, Streaming: true})
		}
	}
	if a.parts.Commands != nil {
		all.addFunc("run", "POST /run/{namespace}/{pod}/{container}", a.run)
		all.addFunc("run-uid", "POST /run/{namespace}/{pod}/{uid}/{container}", a.run)
	}
	if a.parts.Checkpointer != nil && a.cfg.Checkpoints {
		all.addFunc("checkpoint", "POST /checkpoint/{namespace}/{pod}/{container}", a.checkpoint)
	}
	if a.cfg.AllocatedPods {
		all.addFunc("allocatedpods", "GET /allocatedPods", a.allocatedPods)
		all.addFunc("allocatedpods-pod", "GET /allocatedPods/{namespace}/{pod}", a.allocatedPod)
		all.addFunc("allocatedpods-uid", "GET /allocatedPods/{namespace}/{pod}/{uid}", a.allocatedPod)
	}
}

func (a *api) addNodeLogs(all *routes) error {
	if !a.cfg.SystemLogHandler {
		all.add("logs", refuse("/logs/", "logs endpoint is disabled."))
		return nil
	}
	logs, err := nodelogs.New(nodelogs.Config{Dir: a.cfg.NodeLogDir, Query: a.cfg.SystemLogQuery}, a.parts.HostCommands, a.log)
	if err != nil {
		return err
	}
	all.add("logs", server.Route{Pattern: "GET /logs/", Handler: logs})
	return nil
}

func (a *api) addDebug(all *routes) {
	switch {
	case !a.cfg.Profiling:
		all.add("pprof", refuse("/debug/pprof/", "profiling endpoint is disabled."))
	case a.parts.Profiler != nil:
		all.add("pprof", server.Route{Pattern: "GET /debug/pprof/", Handler: a.parts.Profiler, Streaming: true})
	}
	switch {
	case !a.cfg.DebugFlags:
		all.add("debug-flags-v", refuse("/debug/flags/v", "flags endpoint is disabled."))
	case a.parts.SetVerbosity != nil:
		all.addFunc("debug-flags-v", "/debug/flags/v", a.setVerbosity)
	}
}

// addZPages comes last, since /statusz lists the paths there are.
func (a *api) addZPages(all *routes) {
	if a.parts.Configz != nil {
		all.add("configz", server.Configz(a.parts.Configz))
	}
	if a.parts.Flags != nil {
		all.add("flagz", server.Flagz("kubelet", a.parts.Flags))
	}
	if status := a.parts.Status; status.Component != "" {
		status.Paths = roots(*all)
		all.add("statusz", server.Statusz(status))
	}
}

// roots are the first parts of the paths, once each.
func roots(all routes) []string {
	var paths []string
	for _, r := range all {
		_, path, found := strings.Cut(r.Value.Pattern, " ")
		if !found {
			path = r.Value.Pattern
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		paths = append(paths, "/"+first)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
