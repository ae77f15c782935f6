package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node/apiserver"
	"nodekit.dev/node/cluster"
	"nodekit.dev/node/register"
	"nodekit.dev/resources"
)

// membership is how the kubelet joins the cluster of --kubeconfig; nil without
// that flag, when it stands alone.
func membership(s settings) (*cluster.Config, error) {
	f, kc := s.flags, &s.loaded.Kubelet
	if f.kubeconfig == "" {
		if f.bootstrapKubeconfig != "" {
			return nil, errors.New("--bootstrap-kubeconfig needs --kubeconfig, where the credentials are written that it brings")
		}
		return nil, nil
	}
	c := cluster.Default()
	if err := certificates(&c, f, kc, s.features); err != nil {
		return nil, err
	}
	if err := connection(&c, kc); err != nil {
		return nil, err
	}
	c.NoTrustBundles = !s.features.Enabled("ClusterTrustBundleProjection")
	c.NoPodCertificates = !s.features.Enabled("PodCertificateRequest")
	return &c, registration(&c.Register, s)
}

// certificates are --kubeconfig, --bootstrap-kubeconfig and --cert-dir.
func certificates(c *cluster.Config, f *flags, kc *config.KubeletConfiguration, features config.Features) error {
	out := &c.Certs
	for _, path := range []struct {
		from string
		to   *string
	}{
		{f.kubeconfig, &out.Kubeconfig}, {f.bootstrapKubeconfig, &out.BootstrapKubeconfig}, {f.certDir, &out.Dir},
		{kc.TLSCertFile, &out.TLSCertFile}, {kc.TLSPrivateKeyFile, &out.TLSPrivateKeyFile},
	} {
		absolute, err := absolute(path.from)
		if err != nil {
			return err
		}
		*path.to = absolute
	}
	out.RotateCertificates = kc.RotateCertificates
	out.ServerTLSBootstrap = kc.ServerTLSBootstrap
	out.RotateKubeletServerCertificate = features.Enabled("RotateKubeletServerCertificate")
	out.ReloadKubeletServerCertificateFile = features.Enabled("ReloadKubeletServerCertificateFile")
	out.AllowDNSOnlyNodeCSR = features.Enabled("AllowDNSOnlyNodeCSR")
	return nil
}

// connection is how much is asked of the API server, and in which form.
func connection(c *cluster.Config, kc *config.KubeletConfiguration) (err error) {
	api := &c.API
	api.QPS, api.Burst = float64(*kc.KubeAPIQPS), int(kc.KubeAPIBurst)
	api.EventQPS, api.EventBurst = float64(*kc.EventRecordQPS), int(kc.EventBurst)
	api.ContentType = kc.ContentType
	api.UserAgent = "kubelet/" + Version()
	api.HTTP2, err = apiserver.HTTP2FromEnv(os.Getenv)
	return err
}

// registration is what the Node object says.
func registration(out *register.Config, s settings) error {
	f, kc := s.flags, &s.loaded.Kubelet
	out.Register = *kc.RegisterNode
	if onCgroupV1("/sys/fs/cgroup") {
		out.StartWarnings = []register.Warning{{Reason: "CgroupV1", Message: cgroupV1Ends}}
	}
	out.Labels, out.AllowLabel = f.nodeLabels, s.labels
	out.Taints = kc.RegisterWithTaints
	out.ProviderID = kc.ProviderID
	out.ExternalCloud = f.cloudProvider == "external"
	out.AttachByController = *kc.EnableControllerAttachDetach
	out.NoGetWhenForbidden = s.features.Enabled("KubeletRegistrationGetOnExistsOnly")
	out.TellUserNamespace = s.features.Enabled("KubeletInUserNamespace")
	out.Pods = resources.PodLimit{Max: int(kc.MaxPods), PerCore: int(kc.PodsPerCore)}
	out.LocalStorage = kc.LocalStorageCapacityIsolation == nil || *kc.LocalStorageCapacityIsolation
	out.MaxImages = int(*kc.NodeStatusMaxImages)
	out.Port = kc.Port
	out.KubeletVersion = Version()
	if !s.features.Enabled("DisableNodeKubeProxyVersion") {
		out.KubeProxyVersion = Version()
	}
	out.UpdateEvery = kc.NodeStatusUpdateFrequency.Duration
	out.ReportEvery = kc.NodeStatusReportFrequency.Duration
	out.LeaseDuration = time.Duration(kc.NodeLeaseDurationSeconds) * time.Second
	var err error
	if out.NodeIPs, _, err = register.ParseNodeIPs(f.nodeIP); err != nil {
		return err
	}
	return errors.Join(reserved(&out.Reserved, kc, f.ignoreEviction), declared(out, s))
}

// reserved is what the node keeps from pods: without the hard eviction
// thresholds under --experimental-allocatable-ignore-eviction.
func reserved(out *resources.Reserved, kc *config.KubeletConfiguration, ignoreEviction bool) (err error) {
	if out.Kube, err = resources.ParseReserved(kc.KubeReserved); err != nil {
		return fmt.Errorf("kubeReserved: %w", err)
	}
	if out.System, err = resources.ParseReserved(kc.SystemReserved); err != nil {
		return fmt.Errorf("systemReserved: %w", err)
	}
	if out.Eviction, err = resources.ParseHardEviction(kc.EvictionHard); err != nil {
		return fmt.Errorf("evictionHard: %w", err)
	}
	cpus, err := resources.CPUs(kc.ReservedSystemCPUs)
	if err != nil {
		return fmt.Errorf("reservedSystemCPUs: %w", err)
	}
	if ignoreEviction {
		out.Eviction = nil // the text was checked all the same
	}
	*out = out.ReserveCPUs(cpus)
	return nil
}

// declared are the features that the scheduler is told of, where the gate says so.
// A gate that is on for what this agent does not do yet does not count.
func declared(out *register.Config, s settings) error {
	if !s.features.Enabled("NodeDeclaredFeatures") {
		return nil
	}
	gates, err := knownGates(s.options)
	if err != nil {
		return err
	}
	out.DeclaredFeatures, err = register.DeclaredFeatures(kubernetesVersion, func(name string) bool {
		return gates.Has(name) && s.features.Enabled(name)
	}, nil)
	return err
}

// checkpointDir is where archives of containers go.
func checkpointDir(rootDir string) string { return filepath.Join(rootDir, "checkpoints") }
