package apicache_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node/objects/apicache"
	"nodekit.dev/node/objects/internal/apitest"
)

const requestsPath = "/apis/certificates.k8s.io/v1/namespaces/shop/podcertificaterequests"

// certBench is a pod with one podCertificate source, and a signer by hand.
type certBench struct {
	t      *testing.T
	api    *apitest.API
	cache  *apicache.Cache
	pod    *corev1.Pod
	events []string
}

func newCertBench(t *testing.T, keyType string) *certBench {
	t.Helper()
	b := &certBench{t: t, api: apitest.New()}
	b.api.Put("/api/v1/nodes/n1", &corev1.Node{})
	b.api.Put("/api/v1/namespaces/shop/serviceaccounts/robot", &corev1.ServiceAccount{})
	b.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}}
	b.pod.Spec.ServiceAccountName = "robot"
	b.pod.Spec.Volumes = []corev1.Volume{{Name: "cert", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{}, {PodCertificate: &corev1.PodCertificateProjection{
			SignerName: "x.io/signer", KeyType: keyType, UserAnnotations: map[string]string{"x.io/a": "b"},
		}}},
	}}}}
	var err error
	b.cache, err = apicache.New(apicache.Config{
		NodeName: "n1",
		Event: func(pod *corev1.Pod, reason, message string) {
			b.events = append(b.events, pod.Name+" "+reason+": "+message)
		},
	}, apicache.Clients{Core: b.api.Client(corev1.SchemeGroupVersion), Certificates: b.api.Client(certificatesv1.SchemeGroupVersion)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	apitest.Running(t, b.cache.Run)
	return b
}

func (b *certBench) get() (key, chain string, err error) {
	k, c, err := b.cache.PodCertificate(b.t.Context(), b.pod, "cert", 1)
	return string(k), string(c), err
}

// request returns the only request that was not ruled on, with its path.
func (b *certBench) request() (string, *certificatesv1.PodCertificateRequest) {
	b.t.Helper()
	synctest.Wait()
	var found string
	var request *certificatesv1.PodCertificateRequest
	list := &certificatesv1.PodCertificateRequestList{}
	if err := b.api.Client(certificatesv1.SchemeGroupVersion).Get().Namespace("shop").Resource("podcertificaterequests").
		Do(b.t.Context()).Into(list); err != nil {
		b.t.Fatal(err)
	}
	for i := range list.Items {
		if r := &list.Items[i]; len(r.Status.Conditions) == 0 {
			if found != "" {
				b.t.Errorf("two requests at a time: %s, %s", found, r.Name)
			}
			found, request = requestsPath+"/"+r.Name, r
		}
	}
	if found == "" {
		b.t.Fatal("no request")
	}
	return found, request
}

// rule writes the signer's word on the open request.
func (b *certBench) rule(kind, chain string) {
	b.t.Helper()
	at, request := b.request()
	now := time.Now()
	request.Status = certificatesv1.PodCertificateRequestStatus{
		Conditions:       []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: "Why", Message: "because"}},
		CertificateChain: chain,
		BeginRefreshAt:   &metav1.Time{Time: now.Add(12 * time.Hour)}, NotAfter: &metav1.Time{Time: now.Add(24 * time.Hour)},
	}
	b.api.Put(at, request)
	synctest.Wait()
}

func certificate(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

func (b *certBench) state() string {
	states := b.cache.PodCertificateStates()
	if len(states) != 1 || states[0].Signer != "x.io/signer" || states[0].Count != 1 {
		b.t.Errorf("states %+v", states)
		return ""
	}
	return states[0].State
}

func TestPodCertificateIsIssuedAndRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newCertBench(t, "ED25519")
		if _, _, err := b.get(); err == nil || err.Error() != "credential bundle is not issued yet" {
			t.Errorf("%v", err)
		}
		_, r := b.request()
		want := certificatesv1.PodCertificateRequestSpec{
			SignerName: "x.io/signer", PodName: "web", PodUID: "u1", ServiceAccountName: "robot",
			ServiceAccountUID: b.api.UID("/api/v1/namespaces/shop/serviceaccounts/robot"),
			NodeName:          "n1", NodeUID: b.api.UID("/api/v1/nodes/n1"),
			UnverifiedUserAnnotations: map[string]string{"x.io/a": "b"},
		}
		proof := r.Spec.StubPKCS10Request
		r.Spec.StubPKCS10Request = nil
		if got, want := r.Spec.String(), want.String(); got != want {
			t.Errorf("request %s\nwant    %s", got, want)
		}
		if csr, err := x509.ParseCertificateRequest(proof); err != nil || csr.CheckSignature() != nil {
			t.Errorf("proof: %v", err)
		}
		if o := r.OwnerReferences; len(o) != 1 || o[0].UID != "u1" || !strings.HasPrefix(r.Name, "req-") {
			t.Errorf("%+v", r.ObjectMeta)
		}
		if s := b.state(); s != "not_yet_issued" {
			t.Error(s)
		}
		apitest.Changed(b.cache.Changes())
		b.rule("Issued", "# comment\n"+certificate("1"))
		apitest.WantChanged(t, b.cache.Changes(), "u1")
		key, chain, err := b.get()
		block, _ := pem.Decode([]byte(key))
		if err != nil || chain != certificate("1") || block == nil || block.Type != "PRIVATE KEY" {
			t.Errorf("%q, %q, %v", key, chain, err)
		}
		if s := b.state(); s != "fresh" {
			t.Error(s)
		}
		pass(12*time.Hour + 5*time.Minute)
		if again, _, _ := b.get(); again != key {
			t.Error("the old key went before the new one came")
		}
		b.rule("Issued", certificate("2"))
		apitest.WantChanged(t, b.cache.Changes(), "u1")
		if newKey, chain, err := b.get(); err != nil || chain != certificate("2") || newKey == key {
			t.Errorf("%q, %v", chain, err)
		}
		b.cache.Release("u1")
		if states := b.cache.PodCertificateStates(); len(states) > 0 {
			t.Errorf("after the release: %v", states)
		}
		pass(24 * time.Hour)
		if len(b.events) > 0 {
			t.Errorf("events %q", b.events)
		}
	})
}

func TestPodCertificateThatIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newCertBench(t, "ED25519")
		go b.get()
		b.rule("Issued", certificate("1"))
		pass(13 * time.Hour)
		if s := b.state(); s != "overdue_for_refresh" {
			t.Error(s)
		}
		pass(12 * time.Hour)
		if s := b.state(); s != "expired" {
			t.Error(s)
		}
		want := []string{"web CertificateOverdueForRefresh: PodCertificate refresh overdue", "web CertificateExpired: PodCertificate expired"}
		if !slices.Equal(b.events, want) {
			t.Errorf("events %q", b.events)
		}
		if _, chain, err := b.get(); err != nil || chain != certificate("1") {
			t.Errorf("%v", err)
		}
	})
}

func TestPodCertificateThatIsRefused(t *testing.T) {
	for kind, want := range map[string]string{
		"Denied": `PodCertificateRequest was permanently denied: reason="Why" message="because"`,
		"Failed": `PodCertificateRequest was permanently failed: reason="Why" message="because"`,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newCertBench(t, "ED25519")
			go b.get()
			b.rule(kind, "")
			pass(48 * time.Hour)
			if _, _, err := b.get(); err == nil || err.Error() != want {
				t.Errorf("%v", err)
			}
			if s := b.state(); s != strings.ToLower(kind) {
				t.Error(s)
			}
			if !slices.Equal(b.events, []string{"web " + kind + ": " + want}) {
				t.Errorf("events %q", b.events)
			}
			if made := slices.DeleteFunc(b.api.Requests(), func(r string) bool { return !strings.HasPrefix(r, "POST") }); len(made) != 1 {
				t.Errorf("requests %v", made)
			}
		})
	}
}

func TestPodCertificateRequestThatIsDeletedIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newCertBench(t, "ED25519")
		go b.get()
		at, _ := b.request()
		b.api.Delete(at)
		if again, _ := b.request(); again == at {
			t.Error("no new request")
		}
		b.rule("Issued", certificate("1"))
		if _, chain, err := b.get(); err != nil || chain != certificate("1") {
			t.Errorf("%v", err)
		}
	})
}

func TestPodCertificateThatCanNotBeRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newCertBench(t, "ED25519")
		b.api.Refuse(func(r *http.Request) (int, string) {
			if r.Method == http.MethodPost {
				return http.StatusForbidden, "Forbidden"
			}
			return 0, ""
		})
		_, _, err := b.get()
		if err == nil || !strings.HasPrefix(err.Error(), "while creating PodCertificateRequest: ") {
			t.Errorf("%v", err)
		}
		b.api.Refuse(nil)
		pass(time.Minute)
		b.rule("Issued", certificate("1"))
		if _, _, err := b.get(); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newCertBench(t, "DES")
		if _, _, err := b.get(); err == nil || err.Error() != `unknown key type "DES"` {
			t.Errorf("%v", err)
		}
		if _, _, err := b.cache.PodCertificate(t.Context(), b.pod, "cert", 0); err == nil {
			t.Error("a source of another kind has a certificate")
		}
	})
}

// The API server learns of a pod's binding a little after the node.
func TestPodCertificateThatIsForbiddenAtFirst(t *testing.T) {
	for _, c := range []struct {
		known, asked time.Duration
		told         bool // the pod got an error meanwhile
	}{
		{300 * time.Millisecond, 350 * time.Millisecond, false},
		{time.Hour, 0, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newCertBench(t, "ED25519")
			start := time.Now()
			known := start.Add(c.known)
			var asked atomic.Int64 // a time.Duration
			b.api.Refuse(func(r *http.Request) (int, string) {
				if r.Method != http.MethodPost || strings.Contains(r.URL.Path, "serviceaccounts") {
					return 0, ""
				}
				if time.Now().Before(known) {
					return http.StatusForbidden, "Forbidden"
				}
				asked.Store(int64(time.Since(start)))
				return 0, ""
			})
			_, _, err := b.get()
			if told := strings.Contains(err.Error(), "while creating PodCertificateRequest"); told != c.told {
				t.Errorf("known after %v: told %q", c.known, err)
			}
			if got := time.Duration(asked.Load()); got != c.asked {
				t.Errorf("known after %v: asked after %v, want %v", c.known, got, c.asked)
			}
			if took := time.Since(start); c.told && took != 2*time.Second {
				t.Errorf("told after %v", took)
			}
		})
	}
}
