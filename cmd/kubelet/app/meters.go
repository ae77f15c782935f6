package app

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/credentials/nodecert"
	"nodekit.dev/metrics"
	"nodekit.dev/metrics/apimetrics"
	"nodekit.dev/metrics/nodemetrics"
	"nodekit.dev/metrics/probemetrics"
	"nodekit.dev/metrics/runtimemetrics"
	"nodekit.dev/metrics/volumemetrics"
	"nodekit.dev/node"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/expand"
	"nodekit.dev/node/register"
	"nodekit.dev/node/server"
	"nodekit.dev/node/status"
	"nodekit.dev/node/wire"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
)

// meters are the metrics of one kubelet: made before its parts, which they
// observe, and shown by its API.
type meters struct {
	all, probes *metrics.Registry
	shown       shownVolumes

	pods    *nodemetrics.Metrics
	runtime *runtimemetrics.Metrics
	volumes *volumemetrics.Metrics
	checks  *probemetrics.Metrics
	client  *apimetrics.Client
	server  *apimetrics.Server
	certs   *apimetrics.Certificates
	startup *apimetrics.Startup

	// ends are when the certificates in use end, in Unix seconds; 0: none.
	clientEnds, serverEnds atomic.Int64
}

// newMeters makes the metrics. pods lists the node's pods; it is called when
// the metrics are shown.
func newMeters(s settings, nodeName string, pods func() []node.PodView) (*meters, error) {
	m := &meters{
		all: metrics.New(), probes: metrics.New(),
		pods:    nodemetrics.New(nodemetrics.Config{NodeName: nodeName, Pods: pods, CgroupVersion: cgroupVersion()}),
		runtime: runtimemetrics.New(), checks: probemetrics.New(),
		client: apimetrics.NewClient(), server: apimetrics.NewServer(),
		startup: apimetrics.NewStartup(bootTime(time.Now()), time.Now()),
	}
	m.volumes = volumemetrics.New(m.shown.config())
	m.certs = apimetrics.NewCertificates(ending(&m.clientEnds), ending(&m.serverEnds))
	gates, err := knownGates(s.options)
	if err != nil {
		return nil, err
	}
	return m, errors.Join(
		m.all.AddProcess(), m.all.AddBuildInfo(s.version), m.all.AddFeatures(featuresOf(gates, s.features)),
		m.all.Add(m.pods.Collectors()...), m.all.Add(m.runtime.Collectors()...), m.all.Add(m.volumes.Collectors()...),
		m.probes.Add(m.checks.Collectors()...),
		m.all.Add(m.client.Collectors()...), m.all.Add(m.server.Collectors()...),
		m.all.Add(m.certs.Collectors()...), m.all.Add(m.startup.Collectors()...),
	)
}

func cgroupVersion() int {
	if onCgroupV1("/sys/fs/cgroup") {
		return 1
	}
	return 2
}

// bootTime is when the machine started.
func bootTime(now time.Time) time.Time {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration(info.Uptime) * time.Second)
}

func ending(seconds *atomic.Int64) apimetrics.Expiry {
	return func() time.Time {
		if at := seconds.Load(); at != 0 {
			return time.Unix(at, 0)
		}
		return time.Time{}
	}
}

func featuresOf(gates config.Gates, features config.Features) []metrics.Feature {
	var out []metrics.Feature
	for _, g := range gates.List() {
		stage := string(g.Stage)
		if g.Stage == config.GA {
			stage = ""
		}
		out = append(out, metrics.Feature{Name: g.Name, Stage: stage, Enabled: features.Enabled(g.Name)})
	}
	return out
}

// observe puts the metrics' Observers into the configuration of each part.
func (m *meters) observe(cfg *wire.Config) {
	cfg.NodeObserver = m.pods.Observer()
	cfg.CRI.Observer = m.runtime.Calls()
	cfg.Images.Observer = m.runtime.Pulls()
	cfg.Observe.Trace = m.runtime.Relists()
	cfg.Volume.Observer = m.volumes.Observer()
	cfg.VolumeStats.Observer = m.volumes.StatsObserver()
	cfg.CSI.Observer = m.volumes.CSIObserver()
	cfg.SELinux.Outcome = m.volumes.LabelObserver()
	cfg.Probe.Observers = append(cfg.Probe.Observers, m.checks.Observer())
}

// observeCluster does the same for an agent that is in a cluster.
func (m *meters) observeCluster(cfg *cluster.Config) {
	cfg.RegisterObserver = register.Observer{
		Registering: m.startup.Registering, Registered: m.startup.Registered, Ready: m.startup.Ready,
	}
	cfg.StatusObserver = status.Observer{Written: m.startup.StatusWritten}
	cfg.API.Observer = apiserver.Observer{
		Request:   func(r apiserver.Request) { m.client.Request(r.Method, r.Host, r.Code, r.Took) },
		Throttled: func(lane apiserver.LaneID, waited time.Duration) { m.client.Throttled(lane.String(), waited) },
	}
	cfg.Expand.Observer.Grew = m.grew
	cfg.Certs.Observer = nodecert.Observer{
		Rotated: func(kind nodecert.Kind, leaf *x509.Certificate, lived time.Duration) {
			m.certs.Rotated(kind == nodecert.KindServer, lived)
			m.ends(kind).Store(leaf.NotAfter.Unix())
		},
		RenewFailed: func(kind nodecert.Kind, _ error) { m.certs.RenewFailed(kind == nodecert.KindServer) },
	}
}

// grew measures a try to grow a mounted volume, as the stock kubelet's operation
// volume_fs_resize of storage_operation_duration_seconds, failed ones too. One that
// is made while a volume is mounted is a part of that volume_mount.
func (m *meters) grew(g expand.Growth) {
	plugin := "<n/a>" // the stock label of an operation with no plugin: a vendor's Grower of another kind
	if driver := g.Volume.Driver(); driver != "" {
		plugin = volume.Operation{Plugin: csi.Name, Driver: driver}.PluginKind()
	}
	m.volumes.Done(volumemetrics.Operation{
		Kind: "volume_fs_resize", Plugin: plugin, Block: g.Volume.Block(), Took: g.Took, Err: g.Err,
	})
}

func (m *meters) ends(kind nodecert.Kind) *atomic.Int64 {
	if kind == nodecert.KindServer {
		return &m.serverEnds
	}
	return &m.clientEnds
}

// requests observes the agent's own API.
func (m *meters) requests() server.Observer {
	call := func(r server.Request) apimetrics.Call {
		return apimetrics.Call{Method: r.Method, Path: r.Path, Port: string(r.Port), LongRunning: r.LongRunning}
	}
	return server.Observer{
		Begun: func(r server.Request) { m.server.Begun(call(r)) },
		Ended: func(r server.Request, took time.Duration) { m.server.Ended(call(r), took) },
	}
}

// routes show the metrics.
func (m *meters) routes(log *slog.Logger) []node.Ordered[server.Route] {
	route := func(name, path string, from *metrics.Registry) node.Ordered[server.Route] {
		return node.Ordered[server.Route]{Name: name, Value: server.Route{Pattern: "GET " + path, Handler: from.Handler(log), ReadOnly: true}}
	}
	return []node.Ordered[server.Route]{route("metrics", "/metrics", m.all), route("metrics-probes", "/metrics/probes", m.probes)}
}
