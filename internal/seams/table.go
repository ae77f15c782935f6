package seams

// Issue is a piece of work by the name that this project gives it.
type Issue string

// The issues that bring seams.
const (
	House        Issue = "House"
	Cluster      Issue = "Cluster"
	Probes       Issue = "Probes"
	Volumes      Issue = "Volumes"
	Images       Issue = "Images and credentials"
	ResourcesOne Issue = "Resources, part one"
	ResourcesTwo Issue = "Resources, part two"
	Shutdown     Issue = "Shutdown"
	Metrics      Issue = "Metrics"
)

// Finished is the work that is done: none of its rows may be pending.
func Finished() []Issue { return []Issue{House, Cluster} }

// Row is one line of the page. Names of Go are PACKAGE.NAME or
// PACKAGE.TYPE.NAME, with the package's path in this module.
type Row struct {
	Patch string // what is patched, or asked for
	Seam  string // what to use instead, or what it will be
	// Uses names the Go of a seam that is there, Test a test that sees it act,
	// Example a file below examples.
	Uses    []string
	Test    string
	Example string
	// Pending is the issue that brings it, or the rest of it; Done the one that
	// has brought what is there.
	Done    Issue
	Pending Issue
}

// Section is one table of the page.
type Section struct {
	Title string
	Rows  []Row
}

const (
	seamTest    = "node/nodefx.TestReplace"
	probeTest   = "node/nodefx.TestProbeChecksOfAVendor"
	memberTest  = "node/nodefx.TestMembersAct"
	distroTest  = "examples/vendor-distro.TestDistro"
	twoAgents   = "node/wire.TestTwoAgents"
	restartTest = "node/nodefx.TestRestartInOneProcess"
	joinTest    = "node/nodefx.TestJoin"
)

// Table is the whole page.
func Table() []Section {
	return []Section{
		{"What OpenShift patches (1.36.2)", openShift()},
		{"What KubeEdge patches (1.32.10)", kubeEdge()},
		{"What a kubelet SDK should expose", wanted()},
	}
}

func openShift() []Row {
	return []Row{
		{Patch: "cAdvisor's housekeeping interval, by environment", Seam: "options of the stats provider", Pending: Metrics},
		{Patch: "the period of the eviction loop, by environment", Seam: "eviction's Config", Pending: ResourcesOne},
		{Patch: "static pods rewritten before admission (workload partitioning)", Seam: "a mutator on pods of any source",
			Uses: []string{"node.Mutator", "node/nodefx.AddMutator"}, Test: distroTest, Example: "vendor-distro/managed_pods.go", Done: House},
		{Patch: "the CPU manager skips managed pods and reserved CPUs", Seam: "a CPU policy by name, and a pod filter", Pending: ResourcesTwo},
		{Patch: "managed pods left out of QoS sums; CPU hidden in status", Seam: "a mutator of statuses; the QoS filter comes with the resources",
			Uses: []string{"node.StatusMutator", "node/nodefx.AddStatusMutator"}, Test: distroTest, Example: "vendor-distro/site_condition.go", Done: House, Pending: ResourcesOne},
		{Patch: "more node capacity (shared CPUs)", Seam: "contributors of capacity, and an ordered group of node status setters",
			Uses: []string{"node/register.Contributor", "node/clusterfx.AddNodeResources", "node/register.Setter", "node/clusterfx.AddNodeSetter"}, Test: "node/register.TestSetters", Done: Cluster},
		{Patch: "CPU load balancing off on new cgroups", Seam: "a decorator of pod cgroups",
			Uses: []string{"node.Cgroups", "node/nodefx.Replace", "node/nodefx.Wrap"}, Test: distroTest, Example: "vendor-distro/unbalanced_cpus.go", Done: House},
		{Patch: "probe bodies as events; a reason while terminating", Seam: "observers of probe results: of each check, with what it answered",
			Uses: []string{"node/wire.ProbeObserver", "node/nodefx.AddProbeObserver"}, Test: distroTest, Example: "vendor-distro/probe_bodies.go", Done: Probes},
		{Patch: "the metrics scraper is always allowed while the API is away", Seam: "a chain of authorizers",
			Uses: []string{"node/server.Authorizer", "node/server.APIParts", "node/nodefx.AddAuthorizer"}, Test: "node/server.TestChains", Done: Cluster},
		{Patch: "/ovs.slice among the cgroups that are watched", Seam: "the list of cgroup roots", Pending: ResourcesOne},
		{Patch: "vendor labels in the validation of node labels", Seam: "a label policy",
			Uses: []string{"node/register.Config.AllowLabel"}, Test: "node/register.TestCheckLabels", Done: Cluster},
		{Patch: "another path form of the node log query", Seam: "routes of the agent's server",
			Uses: []string{"node/nodefx.AddHTTPRoute", "node/nodefx.Agent.Routes"}, Test: distroTest, Example: "vendor-distro/site_route.go", Done: House},
		{Patch: "CSI's global node-info manager", Seam: "no package globals", Uses: []string{"internal/policy.TestNoPackageState"}, Test: twoAgents, Done: House},
	}
}

func kubeEdge() []Row {
	return []Row{
		{Patch: "a main without TLS bootstrap, cloud and rotation, with its own volume plugins", Seam: "a command from options, a graph from options",
			Uses: []string{"cmd/kubelet/app.Main", "node/nodefx.New", "node/wire.New"}, Test: distroTest, Example: "vendor-distro/main.go", Done: House},
		{Patch: "pods from a bus; its own word on when all sources are ready", Seam: "a group of sources, and a readiness policy",
			Uses: []string{"node.Source", "node/nodefx.AddSource", "node.ReadyPolicy"}, Test: "node.TestReadyPolicyOfAVendor", Example: "vendor-distro/patient_start.go", Done: House},
		{Patch: "no informers: the node, services and objects from a client of its own", Seam: "getters where they are called",
			Uses: []string{"volume/plugins.ConfigMaps", "volume/plugins.Secrets", "node/environment.Services", "node/wire.NodeGetter"}, Test: "node/nodefx.TestReplaceAllOfTheCluster", Done: Cluster},
		{Patch: "a hook when a token is deleted", Seam: "the token source as an interface",
			Uses: []string{"volume/plugins.Tokens", "node/nodefx.Wrap", "node/wire.Contents.OnRelease"}, Test: seamTest, Done: Cluster},
		{Patch: "node status without cloud, with edge labels", Seam: "an ordered group of node status setters",
			Uses: []string{"node/register.Setter", "node/clusterfx.AddNodeSetter", "node/wire.Registration"}, Test: joinTest, Example: "vendor-distro/rack_label.go", Done: Cluster},
		{Patch: "CSI over the bus", Seam: "a factory of CSI clients",
			Uses: []string{"volume/csi.Connector", "volume/csi.Drivers"}, Test: "node/wire.TestDriversOnABus", Done: Volumes},
		{Patch: "no registration of credential plugins, as it exits the process", Seam: "the credentials of pulls as an interface; the plugin host comes with its issue",
			Uses: []string{"runtime/images.PullAuth", "node/nodefx.Replace"}, Test: distroTest, Example: "vendor-distro/registry_login.go", Done: House, Pending: Images},
		{Patch: "a read-only server without authentication", Seam: "the server as a package, its read-only port alone",
			Uses: []string{"node/server.NewAPI", "node/server.APIConfig", "node/server/kubeletapi.Routes"}, Test: "node/server/kubeletapi.TestReadOnlyPort", Done: Cluster},
		{Patch: "other defaults of the configuration", Seam: "defaults as data, and a last word on the configuration in Go",
			Uses: []string{"cmd/kubelet/config.Default", "node/nodefx.Configure"}, Test: memberTest, Example: "vendor-distro/patient_start.go", Done: House},
		{Patch: "klog's exit hook, polls of /healthz, containers through the CRI behind its back", Seam: "lifecycle, typed readiness and the runtime as a handle",
			Uses: []string{"node/nodefx.Agent.Ready", "node/nodefx.Agent.Done", "node/nodefx.Lifecycle", "runtime/cri.Client"}, Test: "node/nodefx.TestDoneReportsAPartThatEnded", Done: House},
	}
}
