package nodecert

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority is a certificate authority with the part of an API server that
// hands out its certificates. It signs for real and checks who asks.
type authority struct {
	*httptest.Server
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate

	mu      sync.Mutex
	life    time.Duration // from its issue on
	age     time.Duration // that certificates have already when they come
	token   string        // of bootstrapping
	revoked bool          // refuses its own client certificates
	away    bool          // answers nothing but 503
	auto    bool          // approves at once
	serial  int64
	list    map[string]*certificatesv1.CertificateSigningRequest
	askers  []string // who made each request
	changed chan struct{}
}

func newAuthority(t testing.TB) *authority {
	k, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: k.private, life: time.Hour, token: "first", auto: true,
		list: map[string]*certificatesv1.CertificateSigningRequest{}, changed: make(chan struct{})}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	a.EnableHTTP2 = true
	a.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	a.StartTLS()
	t.Cleanup(a.Close)
	t.Cleanup(a.CloseClientConnections)
	return a
}

func (a *authority) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	close(a.changed)
	a.changed = make(chan struct{})
}

// kubeconfig writes a kubeconfig with a token.
func (a *authority) kubeconfig(path, token string) {
	a.t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: a.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		a.t.Fatal(err)
	}
}

// certified writes a kubeconfig of this API server with a certificate of the
// node that another authority may have signed.
func (a *authority) certified(path string, by *authority) {
	a.t.Helper()
	key, err := newKey()
	if err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "system:node:edge-7", Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, by.cert, key.private.Public(), by.key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.kubeconfig(path, "")
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		a.t.Fatal(err)
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), ClientKeyData: key.pem}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		a.t.Fatal(err)
	}
}

// who is the user of a request; "": nobody.
func (a *authority) who(r *http.Request) string {
	if r.Header.Get("Authorization") == "Bearer "+a.token {
		return "bootstrap"
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	for _, cert := range r.TLS.PeerCertificates {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil && !a.revoked {
			return cert.Subject.CommonName
		}
	}
	return ""
}

func (a *authority) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	who, away := a.who(r), a.away
	a.mu.Unlock()
	name, named := strings.CutPrefix(r.URL.Path, "/apis/certificates.k8s.io/v1/certificatesigningrequests/")
	switch {
	case away:
		a.fail(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	case who == "":
		a.fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	case r.Method == http.MethodPost:
		a.create(w, r, who)
	case r.URL.Query().Get("watch") == "true":
		a.watch(w, r)
	case named:
		a.mu.Lock()
		defer a.mu.Unlock()
		if csr := a.list[name]; csr != nil {
			a.reply(w, http.StatusOK, csr)
			return
		}
		a.fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	default:
		a.t.Errorf("unexpected request %s %s", r.Method, r.URL)
	}
}

func (a *authority) reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		a.t.Log(err)
	}
}

func (a *authority) fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	a.reply(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: string(reason)})
}

func (a *authority) create(w http.ResponseWriter, r *http.Request, who string) {
	var csr certificatesv1.CertificateSigningRequest
	if err := decode(r, &csr); err != nil {
		a.t.Error(err)
	}
	csr.TypeMeta = metav1.TypeMeta{Kind: "CertificateSigningRequest", APIVersion: "certificates.k8s.io/v1"}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.list[csr.Name] != nil {
		a.fail(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	}
	a.serial++
	csr.UID, csr.ResourceVersion = types.UID(fmt.Sprint("uid-", a.serial)), fmt.Sprint(a.serial)
	a.list[csr.Name] = &csr
	a.askers = append(a.askers, who)
	if a.auto {
		a.sign(&csr)
	}
	a.reply(w, http.StatusCreated, &csr)
}

// sign approves and issues. It is called with the lock.
func (a *authority) sign(csr *certificatesv1.CertificateSigningRequest) {
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		a.t.Error(err)
		return
	}
	usage := x509.ExtKeyUsageClientAuth
	if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		usage = x509.ExtKeyUsageServerAuth
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(100 + a.serial), Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
		NotBefore: now.Add(-a.age).Truncate(time.Second), NotAfter: now.Add(a.life), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, a.cert, request.PublicKey, a.key)
	if err != nil {
		a.t.Error(err)
		return
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: "True"}}
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// watch tells the request's state each time something changed.
func (a *authority) watch(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	for {
		a.mu.Lock()
		changed := a.changed
		event := metav1.WatchEvent{Type: "DELETED"}
		csr := a.list[name]
		if csr != nil {
			event.Type = "MODIFIED"
		} else {
			csr = &certificatesv1.CertificateSigningRequest{TypeMeta: metav1.TypeMeta{Kind: "CertificateSigningRequest", APIVersion: "certificates.k8s.io/v1"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		event.Object.Raw, _ = json.Marshal(csr)
		_ = json.NewEncoder(w).Encode(event)
		a.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// requests are those that there are, and who made each one ever.
func (a *authority) requests() (list []*certificatesv1.CertificateSigningRequest, askers []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, csr := range a.list {
		list = append(list, csr)
	}
	return list, append([]string(nil), a.askers...)
}

// paths are the files of a node.
type paths struct{ dir, pki, kubeconfig, bootstrap string }

func newPaths(t testing.TB) paths {
	dir := t.TempDir()
	return paths{dir, filepath.Join(dir, "pki"), filepath.Join(dir, "kubelet.conf"), filepath.Join(dir, "bootstrap.conf")}
}

func (p paths) config() Config {
	return Config{NodeName: "edge-7", Dir: p.pki, Kubeconfig: p.kubeconfig, BootstrapKubeconfig: p.bootstrap, RotateCertificates: true}
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
