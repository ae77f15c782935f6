package seams

// wanted is what a kubelet SDK should expose, whoever asked for it.
func wanted() []Row {
	return append(ofPods(), ofNode()...)
}

func ofPods() []Row {
	return []Row{
		{Patch: "pod sources: API, file, HTTP, bus, local store", Seam: "a group of sources; the API server's is replaced as any part",
			Uses: []string{"node.Source", "node/nodefx.AddSource", "node/source.NewChannel", "node/wire.PodSource"}, Test: memberTest, Example: "minimal-node/main.go", Done: Cluster},
		{Patch: "pod mutators", Seam: "ordered groups: of pods, sandboxes, containers and statuses",
			Uses: []string{"node/nodefx.AddMutator", "node/nodefx.AddSandboxMutator", "node/nodefx.AddContainerMutator", "node/nodefx.AddStatusMutator"},
			Test: memberTest, Example: "vendor-distro/site_env.go", Done: House},
		{Patch: "admission", Seam: "an ordered group that may say later",
			Uses: []string{"node.Admitter", "node/nodefx.AddAdmitter", "node/admission.New"}, Test: distroTest, Example: "vendor-distro/wait_for_clock.go", Done: House},
		{Patch: "sync loop handlers", Seam: "hooks around a pod's life; events and statuses as sinks, and the writers to the API server",
			Uses: []string{"node.Hook", "node/nodefx.AddHook", "node/nodefx.AddStatusSink", "node/nodefx.AddEventSink", "node/wire.StatusWriter", "node/wire.EventWriter"},
			Test: memberTest, Example: "vendor-distro/audit_hook.go", Done: House},
		{Patch: "runtime and images", Seam: "interfaces of the pod machine, each replaced or wrapped",
			Uses: []string{"node.Engine", "node.Puller", "node.Specs", "node.HookRunner", "node/handlers.Execer"}, Test: seamTest, Example: "custom-engine/engine.go", Done: House},
		{Patch: "image puller policy", Seam: "the puller, replaced or wrapped; queue, cap and priority in its Config",
			Uses: []string{"node.Puller", "runtime/images.Config"}, Test: distroTest, Example: "vendor-distro/mirror.go", Done: House},
		{Patch: "credential providers", Seam: "the credentials of pulls; the host of exec plugins comes with its issue",
			Uses: []string{"runtime/images.PullAuth"}, Test: distroTest, Example: "vendor-distro/registry_login.go", Done: House, Pending: Images},
		{Patch: "PLEG, event source", Seam: "a watcher: looks, lists and hints",
			Uses: []string{"node.Watcher"}, Test: seamTest, Example: "custom-engine/watch.go", Done: House},
		{Patch: "probers", Seam: "checkers by kind, and observers of results; a prober of one's own",
			Uses: []string{"node/nodefx.AddProbeCheck", "node/wire.ProbeObserver", "node/nodefx.AddProbeObserver", "node.Prober"}, Test: probeTest, Example: "vendor-distro/probe_bodies.go", Done: Probes},
		{Patch: "node status setters", Seam: "an ordered group, and contributors of capacity",
			Uses: []string{"node/register.Setter", "node/clusterfx.AddNodeSetter", "node/register.Contributor", "node/clusterfx.AddNodeResources"}, Test: joinTest, Example: "vendor-distro/rack_label.go", Done: Cluster},
		{Patch: "cgroup and container manager", Seam: "small interfaces: pod cgroups, admission and allocation; the rest comes with the resources",
			Uses: []string{"node.Cgroups", "node.Allocator"}, Test: seamTest, Example: "vendor-distro/unbalanced_cpus.go", Done: House, Pending: ResourcesOne},
		{Patch: "CPU and memory policies, hint providers", Seam: "policies by name, a group of hint providers", Pending: ResourcesTwo},
		{Patch: "device plugins and DRA", Seam: "a module that can be left out", Pending: ResourcesTwo},
		{Patch: "volumes", Seam: "an ordered group of plugins before the stock ones; a mounter of one's own",
			Uses: []string{"volume.Plugin", "node/nodefx.AddVolumePlugin", "node.Mounter", "volume/stats.Reader", "node/nodefx.AddVolumeReader", "node/wire.VolumeStats"}, Test: "node/nodefx.TestVolumePluginTakesItsVolumes", Example: "vendor-distro/seeded_volume.go", Done: House},
	}
}

func ofNode() []Row {
	return []Row{
		{Patch: "stats", Seam: "a chain of providers", Pending: Metrics},
		{Patch: "eviction", Seam: "signals and ranking as groups", Pending: ResourcesOne},
		{Patch: "sysctls", Seam: "the list of those allowed; mutators and admitters for what a list can not say",
			Uses: []string{"node/podspec.Config", "node/nodefx.Configure", "node/nodefx.AddAdmitter"}, Test: memberTest, Done: House},
		{Patch: "shutdown", Seam: "signal sources and an ordered plan", Pending: Shutdown},
		{Patch: "authentication and HTTP handlers", Seam: "routes, and chains of authenticators and authorizers, as ordered groups",
			Uses: []string{"node/nodefx.AddHTTPRoute", "node/nodefx.AddAuthenticator", "node/nodefx.AddAuthorizer", "node/server.Authenticator", "node/server.Authorizer"},
			Test: "node/nodefx.TestRoutes", Example: "vendor-distro/site_route.go", Done: Cluster},
		{Patch: "state store", Seam: "a store with a recovery policy", Pending: ResourcesTwo},
		{Patch: "getters of nodes, secrets, config maps and tokens", Seam: "interfaces where they are called, over the API, a folder or a local store",
			Uses: []string{"volume/plugins.ConfigMaps", "volume/plugins.Secrets", "volume/plugins.Tokens", "node/environment.Services", "node/wire.NodeGetter", "node/objects/apicache.Cache", "node/objects.Folder", "node/objects.Store", "node.Environment", "node.RuntimeClasses", "node.UserNamespaces"},
			Test: distroTest, Example: "vendor-distro/site_secrets.go", Done: Cluster},
		{Patch: "metrics, logs, tracing, clock, feature gates", Seam: "passed in: a logger, plain fields, the clock of testing/synctest; registries come with the metrics",
			Uses: []string{"node/wire.Config", "cmd/kubelet/config.Features"}, Test: twoAgents, Done: House, Pending: Metrics},
		{Patch: "health", Seam: "a channel and a callback; the end of a part as an error",
			Uses: []string{"node/nodefx.Agent.Ready", "node.Config.OnReady", "node/nodefx.Agent.Done"}, Test: "node/nodefx.TestHourOfACrashLoop", Example: "minimal-node/main.go", Done: House},
		{Patch: "lifecycle", Seam: "start and stop without an exit, panics contained, as often as one likes in a process",
			Uses: []string{"node/nodefx.Agent.Start", "node/nodefx.Agent.Stop", "node/wire.Agent.Run", "node/nodefx.Lifecycle"}, Test: restartTest, Example: "no-fx/main.go", Done: House},
	}
}
