package config

import (
	"crypto/tls"
	"math"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Rules about the server, the API server and the node object.

func (c *checker) rates() {
	kc := c.kc
	notNegative(c, "eventBurst", kc.EventBurst)
	notNegative(c, "eventRecordQPS", *kc.EventRecordQPS)
	notNegative(c, "kubeAPIBurst", kc.KubeAPIBurst)
	notNegative(c, "kubeAPIQPS", *kc.KubeAPIQPS)
	notNegative(c, "registryBurst", kc.RegistryBurst)
	notNegative(c, "registryPullQPS", *kc.RegistryPullQPS)
}

func (c *checker) ports() {
	kc := c.kc
	if *kc.HealthzPort != 0 {
		between(c, "healthzPort", *kc.HealthzPort, 1, 65535)
	}
	between(c, "port", kc.Port, 1, 65535)
	between(c, "readOnlyPort", kc.ReadOnlyPort, 0, 65535)
	// The flags are gone, but the sentence still has them.
	drop, masquerade := *kc.IPTablesDropBit, *kc.IPTablesMasqueradeBit
	c.must(drop >= 0 && drop <= 31, "iptablesDropBit", "iptablesDropBit (--iptables-drop-bit) %d must be between 0 and 31, inclusive", drop)
	c.must(masquerade >= 0 && masquerade <= 31, "iptablesMasqueradeBit", "iptablesMasqueradeBit (--iptables-masquerade-bit) %d must be between 0 and 31, inclusive", masquerade)
}

// addresses are checked here; the stock kubelet finds most of them later.
func (c *checker) addresses() {
	kc := c.kc
	c.address("address", kc.Address)
	c.address("healthzBindAddress", kc.HealthzBindAddress)
	for _, dns := range kc.ClusterDNS {
		c.must(net.ParseIP(dns) != nil, "clusterDNS", "clusterDNS (--cluster-dns) %v must be an IP address", dns)
	}
	domain := kc.ClusterDomain
	c.must(domain == "" || len(validation.IsDNS1123Subdomain(domain)) == 0, "clusterDomain", "clusterDomain (--cluster-domain) %v must be a DNS subdomain", domain)
}

func (c *checker) address(field, ip string) {
	if net.ParseIP(ip) == nil {
		c.must(false, field, "%s%s %v must be an IP address", field, flagIn(field), ip)
	}
}

func (c *checker) server() {
	kc := c.kc
	c.must(!kc.ServerTLSBootstrap || c.features.Enabled("RotateKubeletServerCertificate"), "serverTLSBootstrap",
		"serverTLSBootstrap %v requires feature gate RotateKubeletServerCertificate", kc.ServerTLSBootstrap)
	query := kc.EnableSystemLogQuery != nil && *kc.EnableSystemLogQuery
	c.must(!query || *kc.EnableSystemLogHandler, "enableSystemLogQuery", "enableSystemLogHandler is required for enableSystemLogQuery")
	c.oneOf("authorization.mode", string(kc.Authorization.Mode), "AlwaysAllow", "Webhook")
	c.tls()
	c.curves()
}

func (c *checker) tls() {
	kc := c.kc
	c.must((kc.TLSCertFile == "") == (kc.TLSPrivateKeyFile == ""), "tlsCertFile",
		"tlsCertFile (--tls-cert-file) and tlsPrivateKeyFile (--tls-private-key-file) must be set together")
	if kc.TLSMinVersion != "" {
		c.oneOf("tlsMinVersion", kc.TLSMinVersion, "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
	}
	for _, name := range kc.TLSCipherSuites {
		c.must(isCipherSuite(name), "tlsCipherSuites", "tlsCipherSuites (--tls-cipher-suites) %q is not a cipher suite of Go's crypto/tls", name)
	}
}

func (c *checker) curves() {
	seen := map[int32]bool{}
	for _, id := range c.kc.TLSCurvePreferences {
		const field = "tlsCurvePreferences"
		switch {
		case id <= 0 || id > math.MaxUint16:
			c.must(false, field, "curve preference %d is out of range (must be 1-%d)", id, math.MaxUint16)
		case seen[id]:
			c.must(false, field, "duplicate curve preference %d", id)
		default:
			unknown := strings.HasPrefix(tls.CurveID(id).String(), "CurveID(")
			c.must(!unknown, field, "curve preference %d is not supported by the current Go version", id)
		}
		seen[id] = true
	}
}

func isCipherSuite(name string) bool {
	named := func(s *tls.CipherSuite) bool { return s.Name == name }
	return slices.ContainsFunc(tls.CipherSuites(), named) || slices.ContainsFunc(tls.InsecureCipherSuites(), named)
}

func (c *checker) node() {
	kc := c.kc
	c.must(kc.NodeLeaseDurationSeconds > 0, "nodeLeaseDurationSeconds", "nodeLeaseDurationSeconds must be greater than 0")
	c.must(*kc.NodeStatusMaxImages >= -1, "nodeStatusMaxImages", "nodeStatusMaxImages (--node-status-max-images) %v must be -1 or greater", *kc.NodeStatusMaxImages)
	notNegative(c, "maxPods", kc.MaxPods)
	notNegative(c, "podsPerCore", kc.PodsPerCore)
	for _, taint := range kc.RegisterWithTaints {
		c.must(soundTaint(taint), "registerWithTaints", "invalid taint: %s", taint.ToString())
		c.must(taint.TimeAdded == nil, "registerWithTaints", "taint.TimeAdded is not nil")
	}
	c.oneOf("configMapAndSecretChangeDetectionStrategy", string(kc.ConfigMapAndSecretChangeDetectionStrategy), "Get", "Cache", "Watch")
	c.option("hairpinMode", kc.HairpinMode, "none", "hairpin-veth", "promiscuous-bridge")
}

func soundTaint(t corev1.Taint) bool {
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return false
	}
	return len(validation.IsQualifiedName(t.Key)) == 0 && len(validation.IsValidLabelValue(t.Value)) == 0
}

// sources are checked here; a period of nothing would never end.
func (c *checker) sources() {
	kc := c.kc
	c.must(kc.FileCheckFrequency.Duration > 0, "fileCheckFrequency", "fileCheckFrequency (--file-check-frequency) %v must be greater than zero", kc.FileCheckFrequency.Duration)
	c.must(kc.HTTPCheckFrequency.Duration > 0, "httpCheckFrequency", "httpCheckFrequency (--http-check-frequency) %v must be greater than zero", kc.HTTPCheckFrequency.Duration)
	c.must(!kc.RunOnce, "runOnce", "runOnce (--runOnce) %v, Runonce mode has been deprecated and should not be set", kc.RunOnce)
}

func (c *checker) tracing() {
	t := c.kc.Tracing
	if t == nil {
		return
	}
	if rate := t.SamplingRatePerMillion; rate != nil {
		between(c, "tracing.samplingRatePerMillion", *rate, 0, 1_000_000)
	}
	if t.Endpoint != nil {
		scheme, _, hasScheme := strings.Cut(*t.Endpoint, "://")
		c.must(!hasScheme || slices.Contains([]string{"dns", "unix", "unix-abstract"}, scheme), "tracing.endpoint",
			"tracing.endpoint %q: unsupported scheme: %v. Options are none, dns, unix, or unix-abstract", *t.Endpoint, scheme)
	}
}
