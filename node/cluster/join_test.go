package cluster_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/node"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/environment"
	"nodekit.dev/node/wire"
	"nodekit.dev/volume"
	"nodekit.dev/volume/plugins"
)

// vendor has a part for every seam of a cluster.
type vendor struct {
	environment.RuntimeHandlers
	node.StatusSink
}

func (vendor) ConfigMap(context.Context, types.UID, string, string) (*corev1.ConfigMap, error) {
	return nil, nil
}

func (vendor) CSIDriver(context.Context, string) (*storagev1.CSIDriver, error) {
	return &storagev1.CSIDriver{}, nil
}

func (vendor) Claimed(context.Context, *corev1.Pod, corev1.Volume) (volume.Source, error) {
	return volume.Source{}, nil
}

func (vendor) InUse() ([]corev1.UniqueVolumeName, bool) { return nil, true }

func (vendor) Secret(context.Context, types.UID, string, string) (*corev1.Secret, error) {
	return nil, nil
}

func (vendor) Services(context.Context, types.UID, string) ([]*corev1.Service, error) {
	return nil, nil
}

func (vendor) Token(context.Context, plugins.TokenRequest) (plugins.Token, error) {
	return plugins.Token{}, nil
}

func (vendor) ClusterTrustBundle(context.Context, types.UID, string) (string, error) { return "", nil }

func (vendor) ClusterTrustBundles(context.Context, types.UID, string, *metav1.LabelSelector) ([]string, error) {
	return nil, nil
}

func (vendor) PodCertificate(context.Context, *corev1.Pod, string, int) (key, chain []byte, err error) {
	return nil, nil, nil
}

func (vendor) PodEvent(node.PodEvent)           {}
func (vendor) NodeEvent(string, string, string) {}

// board keeps the Node, and getter reads it.
type (
	board  struct{}
	getter struct{}
)

func (board) Node() *corev1.Node { return &corev1.Node{} }
func (board) Kick()              {}

func (getter) Node(context.Context) (*corev1.Node, error) { return &corev1.Node{}, nil }

// bus is a source of pods.
type bus struct{}

func (bus) Name() string { return "bus" }

func (bus) Run(ctx context.Context, _ chan<- node.SourceUpdate) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestJoinKeepsWhatIsSet: what a vendor set stays, and with all of it there is
// no connection: the configuration does not even say where to.
func TestJoinKeepsWhatIsSet(t *testing.T) {
	v := vendor{}
	all := map[string]func(*wire.Parts){
		"config maps":      func(p *wire.Parts) { p.ConfigMaps = v },
		"secrets":          func(p *wire.Parts) { p.Secrets = v },
		"services":         func(p *wire.Parts) { p.Services = v },
		"tokens":           func(p *wire.Parts) { p.Tokens = v },
		"trust bundles":    func(p *wire.Parts) { p.TrustBundles = v },
		"pod certificates": func(p *wire.Parts) { p.PodCertificates = v },
		"runtime classes":  func(p *wire.Parts) { p.RuntimeClasses = v },
		"csi drivers":      func(p *wire.Parts) { p.CSIDrivers = v },
		"claims":           func(p *wire.Parts) { p.Claims = v },
		"node getter":      func(p *wire.Parts) { p.NodeGetter = getter{} },
		"registration":     func(p *wire.Parts) { p.Registration = board{} },
		"pod source":       func(p *wire.Parts) { p.PodSource = bus{} },
		"statuses":         func(p *wire.Parts) { p.StatusWriter = wire.StatusesTo(v) },
		"events":           func(p *wire.Parts) { p.EventWriter = v },
	}
	made := func(cfg cluster.Config, but string) (names []string, err error) {
		var parts *wire.Parts
		opts := []wire.Option{cluster.Join(cfg), wire.WithParts(func(p *wire.Parts) {
			parts = p
			for name, set := range all {
				if name != but {
					set(p)
				}
			}
			join := p.Join
			p.Join = func(j wire.Joining) ([]wire.Part, error) {
				runs, err := join(j)
				for _, r := range runs {
					names = append(names, r.Name)
				}
				return runs, err
			}
		})}
		agentConfig := wire.Default()
		agentConfig.NodeName, agentConfig.RootDir = "edge-1", t.TempDir()
		_, err = wire.New(agentConfig, opts...)
		if err == nil && but == "" && parts.PodSource.Name() != "bus" {
			t.Errorf("source %s", parts.PodSource.Name())
		}
		return names, err
	}
	if names, err := made(cluster.Default(), ""); err != nil || len(names) > 0 {
		t.Errorf("with all of it set: %v run, %v", names, err)
	}
	for but := range all {
		if _, err := made(cluster.Default(), but); err == nil {
			t.Errorf("without %s: nobody is to be asked for it, and that is no error", but)
		}
		cfg := cluster.Default()
		cfg.API.REST = &rest.Config{Host: "https://192.0.2.1:6443"}
		if names, err := made(cfg, but); err != nil || len(names) < 2 || names[1] != "api-connection" {
			t.Errorf("without %s: %v run, %v", but, names, err)
		}
	}
}
