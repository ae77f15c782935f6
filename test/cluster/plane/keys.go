package plane

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"time"

	"sigs.k8s.io/yaml"
)

// writeKeys makes all keys and certificates, and the admin's kubeconfig.
func (p *Plane) writeKeys() (err error) {
	if p.Authority, err = NewAuthority("nodekit test"); err != nil {
		return err
	}
	server, serverKey, err := p.Authority.Issue(Identity{
		Names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPs:   []netip.Addr{p.address, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr(serviceIP)},
	})
	if err != nil {
		return err
	}
	kubelet, kubeletKey, err := p.Authority.Issue(Identity{User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	sa, saKey, err := newKey()
	if err != nil {
		return err
	}
	saPublic, err := publicKey(sa)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"ca.crt": p.Authority.Cert, "ca.key": p.Authority.Key,
		"apiserver.crt": server, "apiserver.key": serverKey,
		"kubelet-client.crt": kubelet, "kubelet-client.key": kubeletKey,
		"sa.key": saKey, "sa.pub": saPublic,
	} {
		if err := os.WriteFile(p.path(name), content, 0o600); err != nil {
			return err
		}
	}
	_, err = p.Kubeconfig("admin", Identity{User: "admin", Groups: []string{"system:masters"}})
	return err
}

// CAFile is the file with the certificate that all others are signed by.
func (p *Plane) CAFile() string { return p.path("ca.crt") }

// KubeletClient are the files that the API server itself shows to kubelets.
func (p *Plane) KubeletClient() (cert, key string) {
	return p.path("kubelet-client.crt"), p.path("kubelet-client.key")
}

// Kubeconfig writes NAME.kubeconfig for a client with a certificate of this
// control plane, and returns its path.
func (p *Plane) Kubeconfig(name string, id Identity) (string, error) {
	return p.KubeconfigOf(p.Authority, name, id)
}

// KubeconfigOf is Kubeconfig with a certificate that anybody may have signed.
func (p *Plane) KubeconfigOf(a *Authority, name string, id Identity) (string, error) {
	cert, key, err := a.Issue(id)
	if err != nil {
		return "", err
	}
	return p.writeKubeconfig(name, map[string]any{
		"client-certificate-data": base64.StdEncoding.EncodeToString(cert),
		"client-key-data":         base64.StdEncoding.EncodeToString(key),
	})
}

// NodeKubeconfig is the kubeconfig of a node that needs no bootstrap.
func (p *Plane) NodeKubeconfig(node string) (string, error) {
	return p.Kubeconfig(node, Identity{User: "system:node:" + node, Groups: []string{"system:nodes"}})
}

// TokenKubeconfig is a kubeconfig with a bearer token, as of BootstrapToken.
func (p *Plane) TokenKubeconfig(name, token string) (string, error) {
	return p.writeKubeconfig(name, map[string]any{"token": token})
}

func (p *Plane) writeKubeconfig(name string, user map[string]any) (string, error) {
	type object = map[string]any
	text, err := yaml.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "default",
		"clusters": []object{{"name": "default", "cluster": object{
			"server": p.Server, "certificate-authority-data": base64.StdEncoding.EncodeToString(p.Authority.Cert),
		}}},
		"users":    []object{{"name": name, "user": user}},
		"contexts": []object{{"name": "default", "context": object{"cluster": "default", "user": name}}},
	})
	if err != nil {
		return "", err
	}
	path := p.path(name + ".kubeconfig")
	return path, os.WriteFile(path, text, 0o600)
}

// adminClient speaks to the parts themselves. Controllers and scheduler have
// certificates that they signed themselves, and only their health is asked.
func (p *Plane) adminClient() (*http.Client, error) {
	cert, err := tls.LoadX509KeyPair(p.KubeletClient())
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{
			Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true,
		}},
	}, nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := client.Do(req)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, reply.Status, text)
	}
	return err
}
