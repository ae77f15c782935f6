package apicache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/objects"
	"nodekit.dev/node/objects/follow"
	"nodekit.dev/node/objects/internal/told"
)

// Cache answers from the API server. Use [New]. Safe for concurrent use.
type Cache struct {
	cfg    Config
	log    *slog.Logger
	ran    atomic.Bool
	runner *runner
	told   *told.Changes[objects.Change]

	secrets    *shelf[*follow.One[*corev1.Secret]]
	configMaps *shelf[*follow.One[*corev1.ConfigMap]]
	services   *shelf[*follow.Many[*corev1.Service]] // by namespace
	// bundles are all ClusterTrustBundles, and who refers to any.
	bundles *shelf[*follow.Many[*certificatesv1.ClusterTrustBundle]]
	node    *lazy[*follow.One[*corev1.Node]]
	classes *lazy[*follow.Many[*nodev1.RuntimeClass]]

	podCerts *podCerts
	clients  Clients
}

// New checks the configuration; it asks nobody anything.
func New(cfg Config, clients Clients, log *slog.Logger) (*Cache, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if clients.Core == nil {
		return nil, errors.New("objects: Clients.Core must not be nil")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Cache{cfg: cfg, log: log, runner: &runner{}, told: told.New(objects.ChangeOf), clients: clients}
	c.secrets = newShelf(c.told, c.followSecret)
	c.configMaps = newShelf(c.told, c.followConfigMap)
	c.services = newShelf(nil, c.followServices) // what they give containers never changes
	c.bundles = newShelf(c.told, c.followBundles)
	c.node = &lazy[*follow.One[*corev1.Node]]{open: c.followNode}
	c.classes = &lazy[*follow.Many[*nodev1.RuntimeClass]]{open: c.followClasses}
	c.podCerts = &podCerts{cache: c, certs: map[certID]*podCert{}}
	c.podCerts.requests = &lazy[*follow.Many[*certificatesv1.PodCertificateRequest]]{open: c.followRequests}
	return c, nil
}

// Run follows objects until ctx ends, and returns its error. Getters may be
// called before; they wait for it.
func (c *Cache) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return errors.New("objects: Run was called before; make a new Cache")
	}
	return c.runner.live(ctx, c.told.Run)
}

// Changes tells which pods to bring up to date. One reader; never closed.
func (c *Cache) Changes() <-chan objects.Change { return c.told.Out() }

// Release drops what the pod of that UID refers to. Unknown UIDs are fine.
func (c *Cache) Release(uid types.UID) {
	c.secrets.release(uid)
	c.configMaps.release(uid)
	c.services.release(uid)
	c.bundles.release(uid)
	c.podCerts.release(uid)
	c.told.Forget(uid)
}

// Secret returns the Secret, for the pod of that UID.
func (c *Cache) Secret(ctx context.Context, uid types.UID, namespace, secret string) (*corev1.Secret, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.secrets.refer(uid, name{namespace, secret}).Get(ctx)
}

// ConfigMap returns the ConfigMap, for the pod of that UID.
func (c *Cache) ConfigMap(ctx context.Context, uid types.UID, namespace, configMap string) (*corev1.ConfigMap, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.configMaps.refer(uid, name{namespace, configMap}).Get(ctx)
}

// Services returns all Services of a namespace, for the pod of that UID, in no
// order. They come without annotations and status. Changes does not tell of them.
func (c *Cache) Services(ctx context.Context, uid types.UID, namespace string) ([]*corev1.Service, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.services.refer(uid, name{namespace: namespace}).List(ctx, func(*corev1.Service) bool { return true })
}

// Node returns this node as the API server has it, without its images. It is
// watched from the first call on. Changes does not tell of it.
func (c *Cache) Node(ctx context.Context) (*corev1.Node, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.node.get().Get(ctx)
}

// RuntimeClass returns the RuntimeClass of that name. All of them are watched
// from the first call on. Changes does not tell of them.
func (c *Cache) RuntimeClass(ctx context.Context, class string) (*nodev1.RuntimeClass, error) {
	if c.clients.Node == nil {
		return nil, &objects.NotFoundError{Kind: objects.KindRuntimeClass, Name: class}
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.classes.get().Get(ctx, "", class)
}

// ClusterTrustBundle returns the ClusterTrustBundle of that name, for the pod
// of that UID.
func (c *Cache) ClusterTrustBundle(ctx context.Context, uid types.UID, bundle string) (*certificatesv1.ClusterTrustBundle, error) {
	if c.clients.Certificates == nil {
		return nil, &objects.NotFoundError{Kind: objects.KindBundle, Name: bundle}
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.bundles.refer(uid, name{}).Get(ctx, "", bundle)
}

// ClusterTrustBundles returns those of a signer that the selector matches, for
// the pod of that UID, in no order. A nil selector matches none, an empty one all.
func (c *Cache) ClusterTrustBundles(
	ctx context.Context, uid types.UID, signer string, selector *metav1.LabelSelector,
) ([]*certificatesv1.ClusterTrustBundle, error) {
	match, err := bundlesOf(signer, selector)
	if err != nil || c.clients.Certificates == nil {
		return nil, err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return c.bundles.refer(uid, name{}).List(ctx, match)
}

// bound keeps a caller from waiting for a server that does not answer.
func (c *Cache) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.cfg.Wait, fmt.Errorf("the API server did not answer within %v", c.cfg.Wait))
}
