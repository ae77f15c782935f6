package apicache_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/objects/apicache"
	"nodekit.dev/node/objects/internal/apitest"
)

const (
	dbPath   = "/api/v1/namespaces/shop/secrets/db"
	confPath = "/api/v1/namespaces/shop/configmaps/conf"
)

func newCache(t *testing.T, api *apitest.API) *apicache.Cache {
	t.Helper()
	cache, err := apicache.New(apicache.Config{NodeName: "n1"}, apicache.Clients{
		Core:         api.Client(corev1.SchemeGroupVersion),
		Node:         api.Client(nodev1.SchemeGroupVersion),
		Certificates: api.Client(certificatesv1.SchemeGroupVersion),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	apitest.Running(t, cache.Run)
	return cache
}

// pass lets the bubble's time go on.
func pass(d time.Duration) { <-time.After(d) }

func TestOneWatchForAllPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		api.Put(dbPath, apitest.Secret("1"))
		cache := newCache(t, api)
		for _, uid := range []types.UID{"a", "b", "a"} {
			if s, err := cache.Secret(t.Context(), uid, "shop", "db"); err != nil || string(s.Data["key"]) != "1" {
				t.Fatalf("%v, %v", s, err)
			}
		}
		pass(time.Second) // a watch begins a little after the first answer
		if w := api.Watches(); !slices.Equal(w, []string{"/api/v1/namespaces/shop/secrets?metadata.name=db"}) {
			t.Errorf("watches %v", w)
		}
		apitest.WantChanged(t, cache.Changes())
		api.Put(dbPath, apitest.Secret("2"))
		apitest.WantChanged(t, cache.Changes(), "a", "b")
		cache.Release("a")
		api.Put(dbPath, apitest.Secret("3"))
		apitest.WantChanged(t, cache.Changes(), "b")
		cache.Release("b")
		synctest.Wait()
		if w := api.Watches(); len(w) > 0 {
			t.Errorf("still watched: %v", w)
		}
		if s, err := cache.Secret(t.Context(), "c", "shop", "db"); err != nil || string(s.Data["key"]) != "3" {
			t.Errorf("after the release: %v, %v", s, err)
		}
	})
}

func TestChangesOfOnePodAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		cache := newCache(t, api)
		if _, err := cache.Secret(t.Context(), "a", "shop", "db"); err == nil || err.Error() != `secret "db" not found` {
			t.Errorf("%v", err)
		}
		if _, err := cache.ConfigMap(t.Context(), "a", "shop", "conf"); err == nil || err.Error() != `configmap "conf" not found` {
			t.Errorf("%v", err)
		}
		if _, err := cache.ConfigMap(t.Context(), "b", "shop", "conf"); err == nil {
			t.Error("found what is not there")
		}
		api.Put(dbPath, apitest.Secret("1"))
		api.Put(confPath, apitest.ConfigMap("1"))
		api.Put(confPath, apitest.ConfigMap("2"))
		synctest.Wait()
		// The sender holds one; whatever came since is one.
		got := apitest.Changed(cache.Changes())
		if len(got) > 3 || !slices.Equal(slices.Compact(got), []types.UID{"a", "b"}) {
			t.Errorf("changed: %v", got)
		}
	})
}

func TestGettersBeforeRunAndWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		api.Put(dbPath, apitest.Secret("1"))
		cache, err := apicache.New(apicache.Config{NodeName: "n1"}, apicache.Clients{Core: api.Client(corev1.SchemeGroupVersion)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		early := make(chan error, 1)
		go func() {
			_, err := cache.Secret(t.Context(), "a", "shop", "db")
			early <- err
		}()
		synctest.Wait()
		apitest.Running(t, cache.Run)
		if err := <-early; err != nil {
			t.Errorf("asked before Run: %v", err)
		}
		api.Refuse(func(r *http.Request) (int, string) {
			<-r.Context().Done() // as a transport that waits for credentials
			return -1, "no credentials"
		})
		before := time.Now()
		_, err = cache.ConfigMap(t.Context(), "a", "shop", "conf")
		var away interface{ Unreachable() bool }
		if !errors.As(err, &away) || !away.Unreachable() || time.Since(before) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(before), err)
		}
	})
}

func TestServicesNodeAndRuntimeClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		api.Put("/api/v1/namespaces/shop/services/web", &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}})
		api.Put("/api/v1/namespaces/other/services/x", &corev1.Service{})
		api.Put("/api/v1/nodes/n1", &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"disk": "ssd"}, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "long"},
		}})
		api.Put("/apis/node.k8s.io/v1/runtimeclasses/kata", &nodev1.RuntimeClass{Handler: "kata-qemu"})
		cache := newCache(t, api)
		services, err := cache.Services(t.Context(), "a", "shop")
		if err != nil || len(services) != 1 || services[0].Name != "web" || services[0].Spec.ClusterIP != "10.0.0.1" {
			t.Errorf("%v, %v", services, err)
		}
		n, err := cache.Node(t.Context())
		if err != nil || n.Labels["disk"] != "ssd" || len(n.Annotations) > 0 {
			t.Errorf("%v, %v", n, err)
		}
		class, err := cache.RuntimeClass(t.Context(), "kata")
		if err != nil || class.Handler != "kata-qemu" {
			t.Errorf("%v, %v", class, err)
		}
		if _, err = cache.RuntimeClass(t.Context(), "gvisor"); err == nil || err.Error() != `runtimeclass.node.k8s.io "gvisor" not found` {
			t.Errorf("%v", err)
		}
		cache.Release("a")
		synctest.Wait()
		for _, w := range api.Watches() {
			if w == "/api/v1/namespaces/shop/services?" {
				t.Error("services are still watched")
			}
		}
	})
}

func TestClusterTrustBundles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		put := func(name, signer, env, pem string) {
			api.Put("/apis/certificates.k8s.io/v1/clustertrustbundles/"+name, &certificatesv1.ClusterTrustBundle{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"env": env}},
				Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: pem},
			})
		}
		put("a", "", "prod", "A")
		put("b", "x.io/s", "prod", "B")
		put("c", "x.io/s", "test", "C")
		put("d", "y.io/s", "prod", "D")
		cache := newCache(t, api)
		b, err := cache.ClusterTrustBundle(t.Context(), "p", "a")
		if err != nil || b.Spec.TrustBundle != "A" {
			t.Errorf("%v, %v", b, err)
		}
		for name, tc := range map[string]struct {
			selector *metav1.LabelSelector
			want     string
		}{
			"none": {nil, ""},
			"all":  {&metav1.LabelSelector{}, "BC"},
			"some": {&metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}, "C"},
		} {
			list, err := cache.ClusterTrustBundles(t.Context(), "p", "x.io/s", tc.selector)
			var got []byte
			for _, b := range list {
				got = append(got, b.Spec.TrustBundle...)
			}
			if slices.Sort(got); err != nil || string(got) != tc.want {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		}
		apitest.Changed(cache.Changes())
		put("b", "x.io/s", "prod", "B2")
		apitest.WantChanged(t, cache.Changes(), "p")
		if _, err := cache.ClusterTrustBundle(t.Context(), "p", "zz"); err == nil ||
			err.Error() != `clustertrustbundle.certificates.k8s.io "zz" not found` {
			t.Errorf("%v", err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	core := apitest.New().Client(corev1.SchemeGroupVersion)
	for name, tc := range map[string]struct {
		cfg     apicache.Config
		clients apicache.Clients
	}{
		"no name":       {apicache.Config{}, apicache.Clients{Core: core}},
		"no client":     {apicache.Config{NodeName: "n1"}, apicache.Clients{}},
		"negative wait": {apicache.Config{NodeName: "n1", Wait: -1}, apicache.Clients{Core: core}},
	} {
		if _, err := apicache.New(tc.cfg, tc.clients, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
