package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/authn"
	"nodekit.dev/node/server/authz"
	"nodekit.dev/node/server/kubeletapi"
	"nodekit.dev/node/wire"
	"nodekit.dev/node/wire/serving"
)

// api is the HTTPS API of the node and what it needs to run beside it.
type api struct {
	server *server.API
	cas    *authn.ClientCAs // nil: clients show no certificates
}

// Run serves until ctx ends; nothing where there is no API.
func (a *api) Run(ctx context.Context) error {
	if a == nil {
		return nil
	}
	return a.server.Run(ctx)
}

// routes are what the API serves; none where there is no API.
func (a *api) routes() []server.ServedRoute {
	if a == nil {
		return []server.ServedRoute{}
	}
	return a.server.Routes()
}

// keepCAs takes changes of the clients' authorities over.
func (a *api) keepCAs(ctx context.Context) error {
	if a == nil || a.cas == nil {
		return nil
	}
	return a.cas.Run(ctx)
}

// apiParts are what the API serves from.
type apiParts struct {
	settings
	cfg        wire.Config
	agent      *nodefx.Agent
	connection *cluster.Connection
	ends       *kubeletapi.Ends
	meters     *meters
}

// newAPI makes the API of an agent that is in a cluster: without one there is
// nobody to say who may use it.
func newAPI(p apiParts, log *slog.Logger) (*api, error) {
	kc := &p.loaded.Kubelet
	if p.connection == nil {
		warnNoAPI(p.loaded, log)
		return nil, nil
	}
	if !*kc.EnableServer {
		return nil, nil
	}
	a := &api{}
	apiConfig := apiConfig(kc, p.cfg.NodeName)
	parts, err := a.users(kc, p.features, p.connection.API, log)
	if err != nil {
		return nil, err
	}
	vendors := p.agent.Users()
	parts.Authenticators = withVendors(parts.Authenticators, vendors.Authenticators)
	parts.Authorizers = withVendors(parts.Authorizers, vendors.Authorizers)
	if apiConfig.TLS, err = a.tls(kc, p.connection.Certs.Server, log); err != nil {
		return nil, err
	}
	if parts.Routes, err = apiRoutes(p, log); err != nil {
		return nil, err
	}
	parts.Routes = append(parts.Routes, p.meters.routes(log)...)
	parts.Observer = p.meters.requests()
	parts.Log = log.With("part", "api")
	a.server, err = server.NewAPI(apiConfig, parts)
	return a, err
}

// withVendors adds the vendor's members; one with the name of a stock one takes
// its place, and the others come before the stock ones unless they say after
// whom.
func withVendors[T any](stock, vendors []node.Ordered[T]) []node.Ordered[T] {
	all := slices.Clone(vendors)
	var first []string
	for _, v := range vendors {
		if len(v.After) == 0 {
			first = append(first, v.Name)
		}
	}
	for _, s := range stock {
		if slices.ContainsFunc(vendors, func(v node.Ordered[T]) bool { return v.Name == s.Name }) {
			continue
		}
		s.After = append(slices.Clone(s.After), first...)
		all = append(all, s)
	}
	return all
}

// apiConfig is where the API listens.
func apiConfig(kc *config.KubeletConfiguration, nodeName string) server.APIConfig {
	out := server.APIConfig{
		Address:  net.JoinHostPort(kc.Address, strconv.Itoa(int(kc.Port))),
		NodeName: nodeName, Anonymous: *kc.Authentication.Anonymous.Enabled,
	}
	if kc.ReadOnlyPort > 0 {
		out.ReadOnlyAddress = net.JoinHostPort(kc.Address, strconv.Itoa(int(kc.ReadOnlyPort)))
	}
	return out
}

// routesConfig is what the API serves.
func routesConfig(kc *config.KubeletConfiguration, features config.Features, cfg wire.Config) kubeletapi.Config {
	out := kubeletapi.Default()
	out.PodLogsDir, out.CheckpointDir = cfg.PodLogsDir, checkpointDir(cfg.RootDir)
	out.Debugging = *kc.EnableDebuggingHandlers
	out.SystemLogHandler = *kc.EnableSystemLogHandler
	out.SystemLogQuery = kc.EnableSystemLogQuery != nil && *kc.EnableSystemLogQuery
	out.Profiling, out.DebugFlags = *kc.EnableProfilingHandler, *kc.EnableDebugFlagsHandler
	out.StreamIdleTimeout = kc.StreamingConnectionIdleTimeout.Duration
	out.TranslateWebSockets = features.Enabled("ExtendWebSocketsToKubelet")
	out.Checkpoints = features.Enabled("ContainerCheckpoint")
	out.SplitLogStreams = features.Enabled("PodLogsQuerySplitStreams")
	out.AllocatedPods = features.Enabled("KubeletAllocatedPodsEndpoint")
	return out
}

// users are who may come, and what they may do.
func (a *api) users(kc *config.KubeletConfiguration, features config.Features, client *apiserver.Client, log *slog.Logger) (parts server.APIParts, err error) {
	asks := client.Lane(apiserver.LaneRead)
	if file := kc.Authentication.X509.ClientCAFile; file != "" {
		a.cas, err = authn.NewClientCAs(authn.CAConfig{File: file, Reload: features.Enabled("ReloadKubeletClientCAFile")}, log.With("part", "client-ca"))
		if err != nil {
			return parts, err
		}
		if err := a.cas.Load(); err != nil {
			return parts, fmt.Errorf("unable to load client CA file %s: %w", file, err)
		}
		parts.Authenticators = append(parts.Authenticators, node.Ordered[server.Authenticator]{Name: "x509", Value: authn.X509(a.cas)})
	}
	if *kc.Authentication.Webhook.Enabled {
		reviewed, err := authn.NewTokens(tokenConfig(kc), authn.Reviews(asks.Authentication(), log.With("part", "api")))
		if err != nil {
			return parts, err
		}
		var after []string // a certificate costs no question
		if a.cas != nil {
			after = []string{"x509"}
		}
		parts.Authenticators = append(parts.Authenticators, node.Ordered[server.Authenticator]{Name: "token-review", After: after, Value: reviewed})
	}
	parts.Authorizers, err = authorizers(kc, asks, log)
	return parts, err
}

func tokenConfig(kc *config.KubeletConfiguration) authn.TokenConfig {
	out := authn.DefaultTokens()
	out.CacheTTL = kc.Authentication.Webhook.CacheTTL.Duration
	return out
}

func webhookConfig(kc *config.KubeletConfiguration) authz.WebhookConfig {
	out := authz.DefaultWebhook()
	out.AuthorizedTTL = kc.Authorization.Webhook.CacheAuthorizedTTL.Duration
	out.UnauthorizedTTL = kc.Authorization.Webhook.CacheUnauthorizedTTL.Duration
	return out
}

func authorizers(kc *config.KubeletConfiguration, asks apiserver.Lane, log *slog.Logger) ([]node.Ordered[server.Authorizer], error) {
	if kc.Authorization.Mode == "AlwaysAllow" {
		return []node.Ordered[server.Authorizer]{{Name: "always-allow", Value: authz.AlwaysAllow()}}, nil
	}
	asked, err := authz.NewWebhook(webhookConfig(kc), authz.Reviews(asks.Authorization(), log.With("part", "api")))
	return []node.Ordered[server.Authorizer]{{Name: "webhook", Value: asked}}, err
}

// certificateSource is where the certificate of the API comes from.
type certificateSource = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// tls is how HTTPS is spoken.
func (a *api) tls(kc *config.KubeletConfiguration, certificate certificateSource, log *slog.Logger) (out server.TLSConfig, err error) {
	out.Certificate = certificate
	if a.cas != nil {
		out.ClientCAs = a.cas.Pool
	}
	if out.MinVersion, err = server.TLSVersion(kc.TLSMinVersion); err != nil {
		return out, err
	}
	var insecure []string
	if out.CipherSuites, insecure, err = server.CipherSuites(kc.TLSCipherSuites); err != nil {
		return out, err
	}
	if len(insecure) > 0 {
		log.Warn("insecure cipher suites are in use; take them out of tlsCipherSuites", "suites", insecure)
	}
	for _, curve := range kc.TLSCurvePreferences {
		out.CurvePreferences = append(out.CurvePreferences, tls.CurveID(curve)) //nolint:gosec // validated
	}
	return out, nil
}

// warnNoAPI names what is set for the API of an agent that has none.
func warnNoAPI(loaded *config.Loaded, log *slog.Logger) {
	var fields []string
	for _, f := range loaded.SetFields() {
		root, _, _ := strings.Cut(f.Path, ".")
		ofAPI := []string{"enableServer", "address", "port", "readOnlyPort", "authentication", "authorization", "serverTLSBootstrap"}
		if slices.Contains(ofAPI, root) || strings.HasPrefix(root, "tls") {
			fields = append(fields, f.Path)
		}
	}
	if len(fields) > 0 {
		log.Warn("these configuration fields have no effect: without --kubeconfig there is nobody to say who may use the HTTPS API, and it is not served", "fields", fields)
	}
}

// apiRoutes are the stock ones, with the vendor's among them.
func apiRoutes(p apiParts, log *slog.Logger) ([]node.Ordered[server.Route], error) {
	client := p.agent.CRI()
	if client == nil {
		return nil, fmt.Errorf("the API needs the CRI client, and a vendor's Engine took its place: set enableServer to false")
	}
	parts := kubeletapi.Parts{
		Pods: p.agent.Node(), Runtime: client, Logs: serving.ContainerLogs(log), Ends: p.ends,
		Commands: serving.Commander(client), Checkpointer: client,
		Configz:  func() any { return configz(p.settings) },
		Profiler: profiler(), SetVerbosity: p.setVerbosity, FlushLogs: p.flushLogs, WebSocket: p.meters.server.WebSocket, Log: log.With("part", "api"),
	}
	if p.features.Enabled("ComponentFlagz") {
		parts.Flags = func() map[string]string { return flagz(p.settings) }
	}
	if p.features.Enabled("ComponentStatusz") {
		parts.Status = server.Status{
			Component: "kubelet", Version: Version(), GoVersion: runtime.Version(), Emulation: "1.37", Started: time.Now(),
		}
	}
	stock, err := kubeletapi.Routes(routesConfig(&p.loaded.Kubelet, p.features, p.cfg), parts)
	if err != nil {
		return nil, err
	}
	var vendors []node.Ordered[server.Route]
	for _, r := range p.agent.Routes() {
		vendors = append(vendors, node.Ordered[server.Route]{Name: r.Pattern, Value: r})
	}
	return server.Merge(stock, vendors), nil
}

// profiler is net/http/pprof on a mux of its own.
func profiler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
