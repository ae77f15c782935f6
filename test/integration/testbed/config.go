package testbed

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Versions of containerd that a bed can run.
const (
	V2  = "2"   // ContainerdVersion, built from its module
	V16 = "1.6" // Debian's
)

// writeConfig writes all that containerd reads: its own configuration, where
// the registry is, and the pod network.
func (b *Bed) writeConfig() error {
	conflist, err := cniConflist(b.slot)
	if err != nil {
		return err
	}
	files := map[string]string{
		b.slot.path("containerd.toml"):                     b.containerdConfig(),
		b.slot.path("certs.d", RegistryHost, "hosts.toml"): hostsConfig(b.Registry.addr),
		b.slot.path("cni", "10-bed.conflist"):              conflist,
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bed) containerdConfig() string {
	template := configV3
	if b.Version == V16 {
		template = configV2
	}
	return strings.NewReplacer("{DIR}", b.slot.dir, "{PAUSE}", PauseImage, "{SOCKET}", b.Socket).Replace(template)
}

// restrict_oom_score_adj: without CAP_SYS_RESOURCE runc can not lower the
// score of a sandbox below its own, and every sandbox would fail.
// Root of runc: its records go with the folder, also those of containers that a
// sweep killed.
// netns_mounts_under_state_dir: so that a sweep of the folder finds them.
const configV3 = `version = 3
root = "{DIR}/root"
state = "{DIR}/state"

[grpc]
  address = "{SOCKET}"

[ttrpc]
  address = "{SOCKET}.ttrpc"

[plugins.'io.containerd.nri.v1.nri']
  disable = true

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE}"

[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "{DIR}/certs.d"

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  Root = "{DIR}/runc"

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "{DIR}/cni"
`

const configV2 = `version = 2
root = "{DIR}/root"
state = "{DIR}/state"

[grpc]
  address = "{SOCKET}"

[ttrpc]
  address = "{SOCKET}.ttrpc"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  Root = "{DIR}/runc"

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "{DIR}/certs.d"

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{DIR}/cni"
`

func hostsConfig(addr string) string {
	return fmt.Sprintf("server = \"http://%[1]s\"\n\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", addr)
}

// cniConflist is a bridge of the slot's own with host ports. The network's
// name is in each iptables rule of portmap, so that a sweep finds them.
func cniConflist(s *slot) (string, error) {
	type object = map[string]any
	text, err := json.MarshalIndent(object{
		"cniVersion": "1.0.0",
		"name":       s.name(),
		"plugins": []object{
			{
				"type": "bridge", "bridge": s.name(), "isDefaultGateway": true, "hairpinMode": true,
				"ipam": object{
					"type":    "host-local",
					"dataDir": s.path("ipam"),
					"ranges":  [][]object{{{"subnet": s.subnet().String(), "gateway": s.bridgeIP().String()}}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	return string(text), err
}
