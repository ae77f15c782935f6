package nodecert

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient"
)

// session talks to the API server about signing requests, under one set of
// credentials. It is made for one step and closed after it: certificates are
// asked for a few times a year.
type session struct {
	client rest.Interface
	conn   *kubeclient.Conn
	who    string // whose credentials, and where they are, for errors
	wrong  string // what is known to be wrong with them; empty: nothing
}

// callTimeout bounds each call but the watch.
const callTimeout = 30 * time.Second

// shortWatch is how long a watch must last so that the next one may follow at
// once. API servers end them after half an hour and more.
const shortWatch = 5 * time.Second

// open makes a session; with pair, that is the client certificate.
func open(config *rest.Config, pair *tls.Certificate, who string) (*session, error) {
	opts := kubeclient.Options{UserAgent: "nodekit-nodecert", ReadIdle: 30 * time.Second, PingTimeout: 15 * time.Second}
	if pair != nil {
		opts.Certificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	conn, err := kubeclient.Connect(config, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", who, err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{certificatesv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	gv := certificatesv1.SchemeGroupVersion
	client, err := rest.RESTClientForConfigAndClient(&rest.Config{
		Host: config.Host, APIPath: "/apis", QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: config.Insecure, CAData: config.CAData, CAFile: config.CAFile},
		ContentConfig: rest.ContentConfig{
			GroupVersion: &gv, ContentType: runtime.ContentTypeProtobuf,
			AcceptContentTypes:   runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	}, &http.Client{Transport: conn})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", who, err)
	}
	return &session{client: client, conn: conn, who: who}, nil
}

func (s *session) close() { s.conn.CloseIdle() }

// create makes a signing request, or finds the one that was made before.
func (s *session) create(ctx context.Context, k *key, t *template) (*certificatesv1.CertificateSigningRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := signingRequest(k, t)
	if err != nil {
		return nil, err
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: requestName(k, t)},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: text, SignerName: t.signer, Usages: t.usages()},
	}
	var made certificatesv1.CertificateSigningRequest
	err = s.client.Post().Resource("certificatesigningrequests").Body(csr).Do(ctx).Into(&made)
	if apierrors.IsAlreadyExists(err) {
		err = s.get(ctx, csr.Name, &made)
	}
	if err != nil {
		return nil, fmt.Errorf("make the signing request %s: %w", csr.Name, s.explain(err))
	}
	return &made, nil
}

func (s *session) get(ctx context.Context, name string, into *certificatesv1.CertificateSigningRequest) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.client.Get().Resource("certificatesigningrequests").Name(name).Do(ctx).Into(into)
}

// await returns when the request is not pending any more, when its watch ends,
// or when stop is readable; then with a pending verdict.
func (s *session) await(ctx context.Context, f *flight, stop <-chan struct{}) (verdict, error) {
	var csr certificatesv1.CertificateSigningRequest
	err := s.get(ctx, f.name, &csr)
	if apierrors.IsNotFound(err) {
		return verdict{state: stateRejected, why: "it was removed"}, nil
	}
	if err != nil {
		return verdict{}, fmt.Errorf("look at the signing request %s: %w", f.name, s.explain(err))
	}
	if v := judge(&csr, f); v.state != statePending {
		return v, nil
	}
	opts := metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", f.name).String(),
		ResourceVersion: csr.ResourceVersion,
	}
	w, err := s.client.Get().Resource("certificatesigningrequests").VersionedParams(&opts, metav1.ParameterCodec).Param("watch", "true").Watch(ctx)
	if err != nil {
		return verdict{}, fmt.Errorf("watch the signing request %s: %w", f.name, s.explain(err))
	}
	defer w.Stop()
	begun := time.Now()
	for {
		select {
		case <-ctx.Done():
			return verdict{}, ctx.Err()
		case <-stop:
			return verdict{state: statePending}, nil
		case event, ok := <-w.ResultChan():
			csr, isCSR := event.Object.(*certificatesv1.CertificateSigningRequest)
			switch {
			case !ok && time.Since(begun) < shortWatch:
				return verdict{}, fmt.Errorf("watch the signing request %s: the API server ended it at once", f.name)
			case !ok:
				return verdict{state: statePending}, nil
			case !isCSR:
				return verdict{}, fmt.Errorf("watch the signing request %s: %w", f.name, s.explain(apierrors.FromObject(event.Object)))
			case event.Type == "DELETED":
				return verdict{state: stateRejected, why: "it was removed"}, nil
			}
			if v := judge(csr, f); v.state != statePending {
				return v, nil
			}
		}
	}
}

// flight is a request that was sent.
type flight struct {
	request
	key  *key
	name string
	uid  types.UID
	pair *tls.Certificate // with stateIssued
}

// verdict is what the API server says of a request.
type verdict struct {
	state requestState
	pair  *tls.Certificate // with stateIssued
	why   string           // with stateRejected
}

// judge reads a signing request's status.
func judge(csr *certificatesv1.CertificateSigningRequest, f *flight) verdict {
	if csr.UID != f.uid {
		return verdict{state: stateRejected, why: "another request took its name"}
	}
	approved := false
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return verdict{state: stateRejected, why: "it was denied: " + c.Reason + ": " + c.Message}
		case certificatesv1.CertificateFailed:
			return verdict{state: stateRejected, why: "its signer failed: " + c.Reason + ": " + c.Message}
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	if !approved || len(csr.Status.Certificate) == 0 {
		return verdict{state: statePending}
	}
	pair, err := parsePair(csr.Status.Certificate, f.key.pem)
	switch {
	case err != nil:
		return verdict{state: stateRejected, why: "its certificate can not be used: " + err.Error()}
	case !answers(pair.Leaf, f.key.public):
		return verdict{state: stateRejected, why: "its certificate is for another key"}
	case f.asks.missing(pair.Leaf) != "":
		return verdict{state: stateRejected, why: "its certificate is not what was asked for: " + f.asks.missing(pair.Leaf)}
	}
	return verdict{state: stateIssued, pair: pair}
}

// sameRequest says whether a request that was found under our name is ours.
func sameRequest(csr *certificatesv1.CertificateSigningRequest, k *key, t *template) bool {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil || csr.Spec.SignerName != t.signer {
		return false
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && bytes.Equal(parsed.RawSubjectPublicKeyInfo, k.public)
}

// explain says what to do about an error of the API server.
func (s *session) explain(err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		wrong := cmp.Or(s.wrong, "expired, revoked or of another cluster")
		return fmt.Errorf("the API server does not accept %s (%s): put new credentials into that file: %w", s.who, wrong, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s may not make signing requests; for bootstrapping, bind its group to the cluster role system:node-bootstrapper: %w", s.who, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the API server does not serve certificates.k8s.io/v1: %w", err)
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		return fmt.Errorf("the API server's own certificate does not fit the certificate authority or address in %s; take them from the cluster: %w", s.who, err)
	}
	return err
}
