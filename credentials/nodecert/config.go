package nodecert

import (
	"crypto/x509"
	"errors"
	"path/filepath"
	"time"
)

// Config says which certificates are kept. Paths must be absolute.
type Config struct {
	// NodeName is the node's name: certificates are for system:node:NAME in
	// the group system:nodes. Required.
	NodeName string
	// Dir holds the files (--cert-dir). Required.
	Dir string
	// Kubeconfig says where the API server is. Empty: there is none, and only
	// the serving certificate is kept, from files or self-signed.
	Kubeconfig string
	// BootstrapKubeconfig is used to ask for the first client certificate when
	// Kubeconfig is missing or its certificate is not valid any more;
	// Kubeconfig is then written. Empty: no bootstrap.
	BootstrapKubeconfig string
	// RotateCertificates replaces the client certificate when 70 to 90 % of
	// its life is over, and one that is not the node's own at once. Without
	// it, certificate files that Kubeconfig names are read again when they
	// change.
	RotateCertificates bool

	// TLSCertFile and TLSPrivateKeyFile are the serving certificate; both or
	// neither.
	TLSCertFile       string
	TLSPrivateKeyFile string
	// ReloadKubeletServerCertificateFile reads them again when they change.
	ReloadKubeletServerCertificateFile bool
	// ServerTLSBootstrap asks the API server for the serving certificate and
	// replaces it in time and when the node's addresses change. It needs
	// RotateKubeletServerCertificate, the stock kubelet's switch for it.
	ServerTLSBootstrap             bool
	RotateKubeletServerCertificate bool
	// AllowDNSOnlyNodeCSR asks for a serving certificate even where the node
	// has no IP address but a name.
	AllowDNSOnlyNodeCSR bool
	// Hostname is in a self-signed serving certificate; default NodeName.
	Hostname string

	// Observer's functions may be nil.
	Observer Observer
}

// Kind is one of the two certificates.
type Kind string

// The kinds.
const (
	KindClient Kind = "client"
	KindServer Kind = "server"
)

// Observer is told what happens, for metrics. Its functions must not block;
// each is called by at most one goroutine per kind.
type Observer struct {
	// Rotated is called with each certificate that replaced another, and how
	// long that one lived.
	Rotated func(kind Kind, leaf *x509.Certificate, lived time.Duration)
	// RenewFailed is called each time a certificate could not be had.
	RenewFailed func(kind Kind, err error)
}

// Validate says what can not work.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(c.NodeName != "", "NodeName: must not be empty")
	for field, path := range map[string]string{"Dir": c.Dir, "Kubeconfig": c.Kubeconfig, "BootstrapKubeconfig": c.BootstrapKubeconfig, "TLSCertFile": c.TLSCertFile, "TLSPrivateKeyFile": c.TLSPrivateKeyFile} {
		need(path == "" || filepath.IsAbs(path), field+": "+path+" must be an absolute path")
	}
	need(c.Dir != "", "Dir: must not be empty")
	need(c.BootstrapKubeconfig == "" || c.Kubeconfig != "", "BootstrapKubeconfig: needs Kubeconfig, where the result is written")
	need((c.TLSCertFile == "") == (c.TLSPrivateKeyFile == ""), "TLSCertFile, TLSPrivateKeyFile: give both or neither")
	need(!c.ServerTLSBootstrap || c.RotateKubeletServerCertificate, "ServerTLSBootstrap: needs RotateKubeletServerCertificate")
	need(!c.ServerTLSBootstrap || c.Kubeconfig != "", "ServerTLSBootstrap: needs Kubeconfig, since an API server signs the certificate")
	return errors.Join(errs...)
}
