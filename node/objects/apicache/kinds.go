package apicache

import (
	"fmt"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"nodekit.dev/node/objects"
	"nodekit.dev/node/objects/follow"
)

// lastApplied is a copy of the whole object, for kubectl alone.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func (c *Cache) followSecret(n name, tell func()) (*follow.One[*corev1.Secret], func()) {
	one := follow.NewOne(follow.Options[*corev1.Secret]{
		Source:  follow.Source{Client: c.clients.Core, Kind: objects.KindSecret, Resource: "secrets", Namespace: n.namespace, Name: n.name},
		New:     func() *corev1.Secret { return &corev1.Secret{} },
		Trim:    func(s *corev1.Secret) { trim(s) },
		Final:   func(s *corev1.Secret) bool { return s.Immutable != nil && *s.Immutable },
		Changed: tell, Log: c.log,
	})
	return one, c.runner.start("objects-secret", one.Run)
}

func (c *Cache) followConfigMap(n name, tell func()) (*follow.One[*corev1.ConfigMap], func()) {
	one := follow.NewOne(follow.Options[*corev1.ConfigMap]{
		Source:  follow.Source{Client: c.clients.Core, Kind: objects.KindConfigMap, Resource: "configmaps", Namespace: n.namespace, Name: n.name},
		New:     func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		Trim:    func(m *corev1.ConfigMap) { trim(m) },
		Final:   func(m *corev1.ConfigMap) bool { return m.Immutable != nil && *m.Immutable },
		Changed: tell, Log: c.log,
	})
	return one, c.runner.start("objects-configmap", one.Run)
}

func (c *Cache) followServices(n name, _ func()) (*follow.Many[*corev1.Service], func()) {
	many := follow.NewMany(follow.ManyOptions[*corev1.Service]{
		Source:  follow.Source{Client: c.clients.Core, Kind: objects.KindService, Resource: "services", Namespace: n.namespace},
		NewList: func() follow.List { return &corev1.ServiceList{} },
		Items:   func(list follow.List) []*corev1.Service { return pointers(list.(*corev1.ServiceList).Items) },
		Trim: func(s *corev1.Service) {
			trim(s)
			s.Annotations, s.Status = nil, corev1.ServiceStatus{}
		},
		Log: c.log,
	})
	return many, c.runner.start("objects-services", many.Run)
}

func (c *Cache) followBundles(_ name, tell func()) (*follow.Many[*certificatesv1.ClusterTrustBundle], func()) {
	many := follow.NewMany(follow.ManyOptions[*certificatesv1.ClusterTrustBundle]{
		Source:  follow.Source{Client: c.clients.Certificates, Kind: objects.KindBundle, Resource: "clustertrustbundles"},
		NewList: func() follow.List { return &certificatesv1.ClusterTrustBundleList{} },
		Items: func(list follow.List) []*certificatesv1.ClusterTrustBundle {
			return pointers(list.(*certificatesv1.ClusterTrustBundleList).Items)
		},
		Trim:    func(b *certificatesv1.ClusterTrustBundle) { trim(b) },
		Changed: func(*certificatesv1.ClusterTrustBundle) { tell() },
		Log:     c.log,
	})
	return many, c.runner.start("objects-clustertrustbundles", many.Run)
}

func (c *Cache) followNode() *follow.One[*corev1.Node] {
	one := follow.NewOne(follow.Options[*corev1.Node]{
		Source: follow.Source{Client: c.clients.Core, Kind: objects.KindNode, Resource: "nodes", Name: c.cfg.NodeName},
		New:    func() *corev1.Node { return &corev1.Node{} },
		Trim: func(n *corev1.Node) {
			trim(n)
			n.Status.Images = nil
		},
		Changed: c.cfg.NodeChanged,
		Log:     c.log,
	})
	c.runner.start("objects-node", one.Run)
	return one
}

func (c *Cache) followClasses() *follow.Many[*nodev1.RuntimeClass] {
	many := follow.NewMany(follow.ManyOptions[*nodev1.RuntimeClass]{
		Source:  follow.Source{Client: c.clients.Node, Kind: objects.KindRuntimeClass, Resource: "runtimeclasses"},
		NewList: func() follow.List { return &nodev1.RuntimeClassList{} },
		Items:   func(list follow.List) []*nodev1.RuntimeClass { return pointers(list.(*nodev1.RuntimeClassList).Items) },
		Trim:    func(r *nodev1.RuntimeClass) { trim(r) },
		Log:     c.log,
	})
	c.runner.start("objects-runtimeclasses", many.Run)
	return many
}

// trim drops what nobody on a node reads.
func trim(o metav1.Object) {
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[lastApplied] != "" {
		delete(annotations, lastApplied)
		o.SetAnnotations(annotations)
	}
}

// pointers gives each item memory of its own, so that one that stays does not
// hold the whole list.
func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		item := items[i]
		out[i] = &item
	}
	return out
}

// bundlesOf says which ClusterTrustBundles are of a signer and match.
func bundlesOf(signer string, selector *metav1.LabelSelector) (func(*certificatesv1.ClusterTrustBundle) bool, error) {
	match, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("label selector of ClusterTrustBundles: %w", err)
	}
	return func(b *certificatesv1.ClusterTrustBundle) bool {
		return b.Spec.SignerName == signer && match.Matches(labels.Set(b.Labels))
	}, nil
}

// lazy makes a value when it is first asked for.
type lazy[V any] struct {
	open  func() V
	once  sync.Once
	value V
}

func (l *lazy[V]) get() V {
	l.once.Do(func() { l.value = l.open() })
	return l.value
}
