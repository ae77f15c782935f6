package app

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"nodekit.dev/cmd/kubelet/config"
)

// cgroup2Magic is the filesystem type of the one hierarchy of cgroup v2.
const cgroup2Magic = unix.CGROUP2_SUPER_MAGIC

// checkHost refuses a host that the configuration refuses, and gives the agent
// its oom_score_adj.
func checkHost(kc *config.KubeletConfiguration, log *slog.Logger) error {
	var fs unix.Statfs_t
	err := unix.Statfs("/sys/fs/cgroup", &fs)
	if err == nil && fs.Type != cgroup2Magic && *kc.FailCgroupV1 {
		return errors.New("kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is in maintenance mode; set failCgroupV1: false in the configuration file to run here all the same")
	}
	adj := strconv.Itoa(int(*kc.OOMScoreAdj))
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(adj), 0o644); err != nil { //nolint:gosec // procfs sets the mode
		log.Warn("the agent keeps its oom_score_adj: the kernel may end it before a container", "wanted", adj, "err", err)
	}
	return nil
}

// nodeName is --hostname-override, or the host's name in lower case.
func nodeName(override string) (string, error) {
	if name := strings.ToLower(strings.TrimSpace(override)); name != "" {
		return name, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", err
	}
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return "", errors.New("empty hostname is invalid; set --hostname-override")
	}
	return name, nil
}

// nodeIPs reads --node-ip, or finds the host's first address that others can
// reach.
func nodeIPs(flag string) ([]string, error) {
	if flag == "" {
		return hostIPs()
	}
	var ips []net.IP
	for part := range strings.SplitSeq(flag, ",") {
		ip, err := nodeIP(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		ips = append(ips, ip)
	}
	if len(ips) > 2 || len(ips) == 2 && isIPv4(ips[0]) == isIPv4(ips[1]) {
		return nil, errors.New("bad --node-ip \"" + flag + "\": must be a single IP, or a dual-stack pair of IPs of different families")
	}
	return texts(ips), nil
}

func nodeIP(text string) (net.IP, error) {
	ip := net.ParseIP(text)
	switch {
	case ip == nil:
		return nil, errors.New("bad --node-ip \"" + text + "\": not an IP address")
	case ip.IsLoopback():
		return nil, errors.New("bad --node-ip \"" + text + "\": nodeIP can't be loopback address")
	case ip.IsMulticast():
		return nil, errors.New("bad --node-ip \"" + text + "\": nodeIP can't be a multicast address")
	case ip.IsLinkLocalUnicast():
		return nil, errors.New("bad --node-ip \"" + text + "\": nodeIP can't be a link-local unicast address")
	}
	return ip, nil
}

// hostIPs gives one address per family, of the interfaces that are up.
func hostIPs() ([]string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var v4, v6 []net.IP
	for _, a := range addrs {
		ipnet, ok := a.(*net.IPNet)
		if !ok || !ipnet.IP.IsGlobalUnicast() {
			continue
		}
		if isIPv4(ipnet.IP) {
			v4 = append(v4, ipnet.IP)
		} else {
			v6 = append(v6, ipnet.IP)
		}
	}
	var found []net.IP
	for _, family := range [][]net.IP{v4, v6} {
		if len(family) > 0 {
			found = append(found, family[0])
		}
	}
	return texts(found), nil
}

func isIPv4(ip net.IP) bool { return ip.To4() != nil }

func texts(ips []net.IP) []string {
	out := make([]string, len(ips))
	for i, ip := range ips {
		out[i] = ip.String()
	}
	return out
}
