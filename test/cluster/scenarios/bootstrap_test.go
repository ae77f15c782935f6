package scenarios

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"nodekit.dev/test/cluster/follow"
	"nodekit.dev/test/cluster/plane"
	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/daemon"
)

// signing is how long certificates live: a node renews at 70 to 90 percent, and
// five minutes of the life of a short one lie before its birth.
const signing = 150 * time.Second

// TestBootstrap joins a node with a token, and watches both of its certificates
// being renewed without a moment of not being Ready.
func TestBootstrap(t *testing.T) {
	require(t)
	t.Parallel() // it mostly waits
	e := newWorld(t, world.Options{Plane: plane.Options{SigningDuration: signing, VerifyKubelets: true}})
	approveServing(t, e)
	n := e.Nodes[0]
	token, err := e.Plane.BootstrapToken(t.Context(), "joiner", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	bootstrap, err := e.Plane.TokenKubeconfig("bootstrap", token)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, certs := filepath.Join(n.Bed.Dir, "joined.kubeconfig"), filepath.Join(n.Bed.Dir, "pki")
	err = e.StartAgent(t.Context(), n, world.AgentOptions{
		Kubeconfig: kubeconfig, BootstrapKubeconfig: bootstrap,
		Config: map[string]any{"serverTLSBootstrap": true},
		Flags:  []string{"--cert-dir=" + certs},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.untilNodes(t, patience, e.allReady)
	client, serving := filepath.Join(certs, "kubelet-client-current.pem"), filepath.Join(certs, "kubelet-server-current.pem")
	first := waitForCertificate(t, client, nil)
	firstServing := waitForCertificate(t, serving, nil)
	if first.Subject.CommonName != "system:node:node-0" || strings.Join(first.Subject.Organization, " ") != "system:nodes" {
		t.Errorf("the node's certificate is of %v", first.Subject)
	}
	if text, err := os.ReadFile(kubeconfig); err != nil || !strings.Contains(string(text), client) || strings.Contains(string(text), token) {
		t.Errorf("the kubeconfig does not point to %s (%v):\n%s", client, err, text)
	}
	// The API server checks the node's serving certificate here.
	ns := e.namespace(t, "bootstrap")
	e.applyIn(t, ns, sleeper)
	e.untilPod(t, patience, ns, "sleeper", ready)
	e.eventually(t, patience, func() error {
		_, err := e.Plane.Kubectl(t.Context(), "-n", ns, "exec", "sleeper", "--", "true")
		return err
	})

	second := waitForCertificate(t, client, first)
	waitForCertificate(t, serving, firstServing)
	t.Logf("the first certificate ended at %v, the second began at %v and ends at %v", first.NotAfter, second.NotBefore, second.NotAfter)
	if second.NotAfter.Before(first.NotAfter) {
		t.Error("the second certificate ends before the first")
	}
	// It lives on when the first has expired.
	select {
	case <-time.After(time.Until(first.NotAfter) + time.Second):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	e.kubectl(t, "-n", ns, "exec", "sleeper", "--", "true")
	e.kubectl(t, "-n", ns, "run", "later", "--image="+manifest("BUSYBOX"), "--", "sleep", "10000")
	e.untilPod(t, patience, ns, "later", ready)
	for _, fault := range e.watch.drain() {
		t.Error(fault)
	}
}

// approveServing does what an administrator must: nobody approves serving
// certificates by itself.
func approveServing(t *testing.T, e *env) {
	client, err := follow.Client(e.Plane.AdminKubeconfig, certificatesv1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	wanted := make(chan string, 100)
	requests := follow.New(client, "certificatesigningrequests", func(c follow.Change[*certificatesv1.CertificateSigningRequest]) {
		if c.New.Spec.SignerName == certificatesv1.KubeletServingSignerName && len(c.New.Status.Conditions) == 0 && !c.Gone {
			wanted <- c.New.Name
		}
	})
	background(t, requests.Run)
	background(t, func(ctx context.Context) {
		for {
			select {
			case name := <-wanted:
				if _, err := e.Plane.Kubectl(ctx, "certificate", "approve", name); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

// waitForCertificate waits until the file holds another certificate than before.
func waitForCertificate(t *testing.T, path string, before *x509.Certificate) *x509.Certificate {
	t.Helper()
	limit := patience
	if before != nil {
		limit = time.Until(before.NotAfter)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		cert, err := readCertificate(path)
		if err == nil && (before == nil || cert.SerialNumber.Cmp(before.SerialNumber) != 0) {
			return cert
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no other certificate in %s after %v: %v", path, limit, err)
		}
	}
}

func readCertificate(path string) (*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, fmt.Errorf("%s holds no certificate", path)
}

// TestBadCredentials: what is wrong is said clearly, and the agent lives on, so
// that it joins when the credentials were made good.
func TestBadCredentials(t *testing.T) {
	require(t)
	t.Parallel()
	e := newWorld(t, world.Options{Nodes: 3})
	t.Run("an expired certificate", func(t *testing.T) { expiredCertificate(t, e) })
	t.Run("a certificate of another authority", func(t *testing.T) { strangersCertificate(t, e) })
	t.Run("a token that was revoked", func(t *testing.T) { revokedToken(t, e) })
}

func expiredCertificate(t *testing.T, e *env) {
	n := e.Nodes[0]
	until := time.Now().Add(-time.Minute)
	kubeconfig, err := e.Plane.Kubeconfig(n.Name, plane.Identity{
		User: "system:node:" + n.Name, Groups: []string{"system:nodes"}, Until: until,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.StartAgent(t.Context(), n, world.AgentOptions{Kubeconfig: kubeconfig}); err != nil {
		t.Fatal(err)
	}
	e.untilLog(t, n, fmt.Sprintf("the API server does not accept the client certificate of kubeconfig %s (it expired at %s): "+
		"put new credentials into that file: Unauthorized", kubeconfig, until.UTC().Format(time.RFC3339)))
	e.joinsWithout(t, n, func() error { // the same file, as the message says
		_, err := e.Plane.NodeKubeconfig(n.Name)
		return err
	})
}

// strangersCertificate is what a revoked one looks like: the authority that
// vouched for it is one no more.
func strangersCertificate(t *testing.T, e *env) {
	n := e.Nodes[2]
	other, err := plane.NewAuthority("stranger")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := e.Plane.KubeconfigOf(other, n.Name, plane.Identity{User: "system:node:" + n.Name, Groups: []string{"system:nodes"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.StartAgent(t.Context(), n, world.AgentOptions{Kubeconfig: kubeconfig}); err != nil {
		t.Fatal(err)
	}
	e.untilLog(t, n, "the API server does not accept the client certificate of kubeconfig "+kubeconfig+
		" (expired, revoked or of another cluster): put new credentials into that file: Unauthorized")
	e.joinsWithout(t, n, func() error {
		_, err := e.Plane.NodeKubeconfig(n.Name)
		return err
	})
}

// joinsWithout waits until the node joins, without a restart, once the credentials were made good.
func (e *env) joinsWithout(t *testing.T, n *world.Node, mend func() error) {
	t.Helper()
	if !n.Agent.Alive() {
		t.Fatal("the agent ended by itself")
	}
	if err := mend(); err != nil {
		t.Fatal(err)
	}
	e.eventually(t, patience, func() error {
		for _, node := range e.nodes.All() {
			if node.Name == n.Name {
				return nil
			}
		}
		return errors.New("the node did not join after its credentials were good again")
	})
}

func revokedToken(t *testing.T, e *env) {
	n := e.Nodes[1]
	token, err := e.Plane.BootstrapToken(t.Context(), "revoke", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	bootstrap, err := e.Plane.TokenKubeconfig("revoked", token)
	if err != nil {
		t.Fatal(err)
	}
	e.kubectl(t, "-n", "kube-system", "delete", "secret", "bootstrap-token-revoke")
	err = e.StartAgent(t.Context(), n, world.AgentOptions{
		Kubeconfig: filepath.Join(n.Bed.Dir, "joined.kubeconfig"), BootstrapKubeconfig: bootstrap,
		Flags: []string{"--cert-dir=" + filepath.Join(n.Bed.Dir, "pki")},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.untilLog(t, n, "the API server does not accept the token of bootstrap kubeconfig "+bootstrap+
		" (expired, revoked or of another cluster): put new credentials into that file: Unauthorized")
	e.joinsWithout(t, n, func() error { // the same token again
		_, err := e.Plane.BootstrapToken(t.Context(), "revoke", time.Hour)
		return err
	})
}

// untilLog waits until the agent logged a line with that text.
func (e *env) untilLog(t *testing.T, n *world.Node, text string) {
	t.Helper()
	e.eventually(t, patience, func() error {
		if !strings.Contains(daemon.Tail(n.Agent.LogFile, 1_000_000), text) {
			return fmt.Errorf("the agent of %s has not logged %q", n.Name, text)
		}
		return nil
	})
}
