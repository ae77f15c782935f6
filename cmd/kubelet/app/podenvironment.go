package app

import (
	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/internal/command"
	"nodekit.dev/node/wire"
	"nodekit.dev/resources/userns"
)

// podEnvironment says what pods find around them, beyond the network's names.
func podEnvironment(cfg *wire.Config, kc *config.KubeletConfiguration, features config.Features) {
	cfg.Admission.CompareTaints = features.Enabled("TaintTolerationComparisonOperators")
	cfg.Spec.EnvFiles = features.Enabled("EnvFiles")
	cfg.Spec.EmptyDirModes = features.Enabled("EmptyDirVolumeMode")
	cfg.Spec.FileUsers = features.Enabled("AtomicWriteVolumeUserFields")
	cfg.Spec.StopSignals = features.Enabled("ContainerStopSignals")
	cfg.Node.Rules.StopSignals = cfg.Spec.StopSignals
	cfg.Checks.H2C = features.Enabled("H2CContainerProbe")
	cfg.Checks.GRPCTLS = features.Enabled("GRPCContainerProbeTLS")
	if features.Enabled("DefaultPodSysctls") {
		cfg.Spec.DefaultPodSysctls = kc.DefaultPodSysctls
	}
	cfg.Users.MaxPods = int(kc.MaxPods)
	if users := kc.UserNamespaces; users != nil && users.IDsPerPod != nil {
		cfg.Users.IDsPerPod = *users.IDsPerPod
	}
	cfg.Users.Owned = userns.Owned(command.Runner{}, cfg.Users.IDsPerPod)
}
