package podspec

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// hostsPath is where a container looks for names before it asks a server.
	hostsPath = "/etc/hosts"
	// The first lines, by which programs (the conformance tests among them) tell
	// a file that the agent made from one of the image or the node.
	ownHostsHeader  = "# Kubernetes-managed hosts file.\n"
	nodeHostsHeader = "# Kubernetes-managed hosts file (host network).\n"
)

// HostsFile is the /etc/hosts that the pod's containers mount: its path on the
// host and its content. ok is false where the pod has none of its own: a
// host-network pod without hostAliases, or Config.ManageHosts off.
//
// The caller writes it before each container start; podIPs are the sandbox's.
func (b *Builder) HostsFile(pod *corev1.Pod, podIPs []string) (path string, content []byte, ok bool, err error) {
	path, ok = b.hostsFile(pod)
	if !ok {
		return "", nil, false, nil
	}
	var out bytes.Buffer
	if pod.Spec.HostNetwork {
		node, err := b.cfg.NodeHosts()
		if err != nil {
			return "", nil, false, fmt.Errorf("node's %s: %w", hostsPath, err)
		}
		out.WriteString(nodeHostsHeader)
		out.Write(node)
		if !bytes.HasSuffix(node, []byte("\n")) {
			out.WriteByte('\n')
		}
	} else {
		short, err := shortHostname(pod)
		if err != nil {
			return "", nil, false, err
		}
		b.writeOwnHosts(&out, pod, short, podIPs)
	}
	for _, alias := range pod.Spec.HostAliases {
		fmt.Fprintf(&out, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
	}
	return path, out.Bytes(), true, nil
}

func (b *Builder) hostsFile(pod *corev1.Pod) (path string, ok bool) {
	if !b.cfg.ManageHosts || pod.Spec.HostNetwork && len(pod.Spec.HostAliases) == 0 {
		return "", false
	}
	return filepath.Join(b.cfg.RootDir, "pods", string(pod.UID), "etc-hosts"), true
}

func (b *Builder) writeOwnHosts(out *bytes.Buffer, pod *corev1.Pod, short string, podIPs []string) {
	out.WriteString(ownHostsHeader +
		"127.0.0.1\tlocalhost\n" +
		"::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::\tip6-localnet\n" +
		"fe00::\tip6-mcastprefix\n" +
		"fe00::1\tip6-allnodes\n" +
		"fe00::2\tip6-allrouters\n")
	names := short
	if fqdn := b.fqdn(pod, short); fqdn != "" {
		names = fqdn + "\t" + short
	}
	for _, ip := range podIPs {
		fmt.Fprintf(out, "%s\t%s\n", ip, names)
	}
}
