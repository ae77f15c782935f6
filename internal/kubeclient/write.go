package kubeclient

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"nodekit.dev/internal/atomicfile"
)

// Write writes the kubeconfig of an endpoint whose client certificate and key
// are in one PEM file, as the stock kubelet does after it bootstrapped. The
// folder is made if it is missing.
func Write(path string, endpoint *rest.Config, pemPath string) error {
	cluster := &clientcmdapi.Cluster{
		Server:                endpoint.Host,
		TLSServerName:         endpoint.ServerName,
		InsecureSkipTLSVerify: endpoint.Insecure,
		CertificateAuthority:  endpoint.CAFile,
	}
	if cluster.CertificateAuthority == "" {
		cluster.CertificateAuthorityData = endpoint.CAData
	}
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"default-cluster": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"default-auth": {ClientCertificate: pemPath, ClientKey: pemPath}},
		Contexts:       map[string]*clientcmdapi.Context{"default-context": {Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"}},
		CurrentContext: "default-context",
	})
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return atomicfile.Write(path, data, 0o600)
}
