package nodefx_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/node"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/clusterfx"
	"nodekit.dev/node/environment"
	"nodekit.dev/node/internal/actortest"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/register"
	"nodekit.dev/node/server"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/runtimetest"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/plugins"
)

type nobodyKnown struct{}

func (nobodyKnown) Authenticate(*http.Request) (server.User, bool, error) {
	return server.User{}, false, nil
}

func (nobodyKnown) Authorize(context.Context, server.Attributes) (server.Decision, error) {
	return server.Allow, nil
}

// TestUsers: a vendor's ways in are there for who serves the API.
func TestUsers(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	a := newAgent(t, onWorld(t, b,
		nodefx.AddAuthenticator("badge", nobodyKnown{}),
		nodefx.AddAuthorizer("scraper", func() nobodyKnown { return nobodyKnown{} }, "webhook"),
	)...)
	users := a.Users()
	if len(users.Authenticators) != 1 || users.Authenticators[0].Name != "badge" {
		t.Errorf("authenticators %+v", users.Authenticators)
	}
	if len(users.Authorizers) != 1 || users.Authorizers[0].After[0] != "webhook" {
		t.Errorf("authorizers %+v", users.Authorizers)
	}
	_, err := nodefx.New(onWorld(t, b, nodefx.AddAuthorizer("a", struct{}{}))...)
	wantError(t, err, `AddAuthorizer("a")`, "does not implement server.Authorizer")
}

// clusterConfig leads nowhere.
func clusterConfig() cluster.Config {
	cfg := cluster.Default()
	cfg.API.REST = &rest.Config{Host: "https://192.0.2.1:6443"}
	return cfg
}

// TestJoin: an agent is a member where it joins; a vendor's setters fill in its
// Node, and one takes the place of a stock one.
func TestJoin(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	label := register.SetterFunc(func(_ context.Context, n *corev1.Node) error {
		n.Labels["edge.example/rack"] = "7"
		return nil
	})
	setters := nodefx.Options(
		clusterfx.AddNodeSetter("rack", label, register.SetCapacity),
		clusterfx.AddNodeSetter(register.SetImages, label),
		clusterfx.Configure(func(c *cluster.Config) { c.Register.Labels = map[string]string{"edge.example/site": "north"} }),
	)
	var registrar *register.Registrar
	a := newAgent(t, onWorld(t, b, clusterfx.Join(clusterConfig()), setters, nodefx.Populate(&registrar))...)
	names := registrar.SetterNames()
	at := map[string]int{}
	for i, name := range names {
		at[name]++
		if name == "rack" && at[register.SetCapacity] == 0 {
			t.Errorf("rack comes at %d of %v, before %s", i, names, register.SetCapacity)
		}
	}
	if at["rack"] != 1 || at[register.SetImages] != 1 {
		t.Errorf("setters %v", names)
	}
	if got := registrar.Node().Labels["edge.example/site"]; got != "north" {
		t.Errorf("label %q: the configuration was not edited", got)
	}
	if sources := a.Groups().Sources; len(sources) == 0 || sources[0] != "api" {
		t.Errorf("sources %v", sources)
	}
	alone := newAgent(t, onWorld(t, b, setters)...)
	if got, want := alone.Parts(), []string{"root-lock", "probes", "probe-results", "node"}; !slices.Equal(got, want) {
		t.Errorf("alone, %v run; want %v", got, want)
	}
	if sources := alone.Groups().Sources; len(sources) > 0 {
		t.Errorf("alone, sources %v", sources)
	}
}

// station stands in for a cluster: a bus, say, and files.
type station struct{}

func (station) Environment(context.Context, node.EnvironmentRequest) (node.EnvironmentResult, error) {
	return node.EnvironmentResult{}, nil
}

func (station) RuntimeHandler(context.Context, node.RuntimeHandlerRequest) (node.RuntimeHandlerResult, error) {
	return node.RuntimeHandlerResult{}, nil
}

func (station) UserNamespace(context.Context, node.UserNamespaceRequest) (node.UserNamespaceResult, error) {
	return node.UserNamespaceResult{}, nil
}
func (station) Release(context.Context, string) error { return nil }

func (station) ConfigMap(context.Context, types.UID, string, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{}, nil
}

func (station) Secret(context.Context, types.UID, string, string) (*corev1.Secret, error) {
	return &corev1.Secret{}, nil
}

func (station) Services(context.Context, types.UID, string) ([]*corev1.Service, error) {
	return nil, nil
}

func (station) Token(context.Context, plugins.TokenRequest) (plugins.Token, error) {
	return plugins.Token{}, nil
}

func (station) ClusterTrustBundle(context.Context, types.UID, string) (string, error) { return "", nil }

func (station) ClusterTrustBundles(context.Context, types.UID, string, *metav1.LabelSelector) ([]string, error) {
	return nil, nil
}

func (station) PodCertificate(context.Context, *corev1.Pod, string, int) (key, chain []byte, err error) {
	return nil, nil, nil
}

func (station) CSIDriver(context.Context, string) (*storagev1.CSIDriver, error) {
	return &storagev1.CSIDriver{}, nil
}

func (station) Claimed(context.Context, *corev1.Pod, corev1.Volume) (volume.Source, error) {
	return volume.Source{}, nil
}

func (station) InUse() ([]corev1.UniqueVolumeName, bool) { return nil, true }

// getter reads the Node.
type getter struct{}

func (getter) Node(context.Context) (*corev1.Node, error) { return &corev1.Node{}, nil }

// registration keeps the Node.
type registration struct{}

func (registration) Node() *corev1.Node { return &corev1.Node{} }
func (registration) Kick()              {}

// bus takes statuses and events.
type bus struct{}

func (bus) PodStatus(node.StatusUpdate)           {}
func (bus) PodEvent(node.PodEvent)                {}
func (bus) NodeEvent(eventType, why, what string) {}

func clusterCases() map[string]seamCase {
	at := func(provider string) string { return "nodekit.dev/node/clusterfx." + provider }
	station := func() station { return station{} }
	return map[string]seamCase{
		"podactor.RuntimeClasses": {at("runtimeClasses"), nil, nodefx.Replace[node.RuntimeClasses](station)},
		"plugins.ConfigMaps":      {at("configMaps"), nil, nodefx.Replace[plugins.ConfigMaps](station)},
		"plugins.Secrets":         {at("secrets"), nil, nodefx.Replace[plugins.Secrets](station)},
		"environment.Services":    {at("services"), nil, nodefx.Replace[environment.Services](station)},
		"plugins.Tokens":          {at("tokens"), nil, nodefx.Replace[plugins.Tokens](station)},
		"plugins.TrustBundles":    {at("trustBundles"), nil, nodefx.Replace[plugins.TrustBundles](station)},
		"plugins.PodCertificates": {at("podCertificates"), nil, nodefx.Replace[plugins.PodCertificates](station)},
		"csi.Drivers":             {at("csiDrivers"), []string{"csi-node"}, nodefx.Replace[csi.Drivers](station)},
		"wire.Claims":             {at("claimsOf"), []string{"volume-expansion"}, nodefx.Replace[wire.Claims](station)},
		"wire.NodeGetter":         {at("nodeGetter"), nil, nodefx.Replace[wire.NodeGetter](func() getter { return getter{} })},
		"wire.Registration": {
			at("registrar"), []string{"node-registration"},
			nodefx.Replace[wire.Registration](func() registration { return registration{} }),
		},
		"wire.PodSource": {at("source"), nil, nodefx.Replace[wire.PodSource](func() pods { return pods{name: "bus"} })},
		"wire.StatusWriter": {
			at("statuses"), []string{"pod-status"},
			nodefx.Replace[wire.StatusWriter](func() wire.StatusWriter { return wire.StatusesTo(bus{}) }),
		},
		"wire.EventWriter": {at("recorder"), []string{"events"}, nodefx.Replace[wire.EventWriter](func() bus { return bus{} })},
	}
}

// TestReplaceAllOfTheCluster: with every part that talks to the API server
// replaced there is no connection, and the kubeconfig is not even read. The same
// replacements serve an agent that joins nothing.
func TestReplaceAllOfTheCluster(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	var replace []nodefx.Option
	for _, c := range clusterCases() {
		replace = append(replace, c.replace)
	}
	for name, join := range map[string]nodefx.Option{"joins": clusterfx.Join(cluster.Default()), "alone": nodefx.Options()} {
		var ran built
		a := newAgent(t, onWorld(t, b, append(replace, join, ran.option())...)...)
		for _, provider := range []string{"connection", "cache", "registrar"} {
			if ran.has("nodekit.dev/node/clusterfx." + provider) {
				t.Errorf("%s: %s was built", name, provider)
			}
		}
		if want := []string{"root-lock", "probes", "probe-results", "node"}; !slices.Equal(a.Parts(), want) {
			t.Errorf("%s: %v run, want %v", name, a.Parts(), want)
		}
		if sources := a.Groups().Sources; !slices.Equal(sources, []string{"bus"}) {
			t.Errorf("%s: sources %v", name, sources)
		}
	}
}

// TestWrapOfWhatIsNotThere: an agent that stands alone has no registration.
func TestWrapOfWhatIsNotThere(t *testing.T) {
	b := actortest.New(t, runtimetest.Config{})
	wrap := nodefx.Wrap("w", nil, func(r wire.Registration) wire.Registration { return r })
	_, err := nodefx.New(onWorld(t, b, wrap)...)
	wantError(t, err, `wrap "w" had no effect`, "this agent has no wire.Registration")
	newAgent(t, onWorld(t, b, wrap, clusterfx.Join(clusterConfig()))...)
}
