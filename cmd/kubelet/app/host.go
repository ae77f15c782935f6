package app

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/validation"

	"nodekit.dev/cmd/kubelet/config"
)

// checkHost refuses a host that the configuration refuses, and gives the
// process its oom_score_adj, its limit of open files and its profiles.
func checkHost(kc *config.KubeletConfiguration, log *slog.Logger) error {
	if err := checkCgroups(onCgroupV1("/sys/fs/cgroup"), *kc.FailCgroupV1); err != nil {
		return err
	}
	adj := strconv.Itoa(int(*kc.OOMScoreAdj))
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(adj), 0o644); err != nil { //nolint:gosec // procfs sets the mode
		log.Warn("the agent keeps its oom_score_adj: the kernel may end it before a container", "wanted", adj, "err", err)
	}
	if err := limitFiles(kc.MaxOpenFiles); err != nil {
		log.Warn("the agent keeps its limit of open files", "wanted", kc.MaxOpenFiles, "err", err)
	}
	if kc.EnableContentionProfiling && *kc.EnableDebuggingHandlers {
		runtime.SetBlockProfileRate(1)
	}
	return nil
}

// limitFiles sets how many files the process may open, never lower than what
// it may now: nothing would tell why it then fails.
func limitFiles(wanted int64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return err
	}
	limit := raised(now, uint64(max(wanted, 0)))
	if limit == now {
		return nil
	}
	err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	if err != nil && now.Cur < now.Max { // as far as anyone may go
		err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: now.Max, Max: now.Max}))
	}
	return err
}

func raised(now unix.Rlimit, wanted uint64) unix.Rlimit {
	return unix.Rlimit{Cur: max(now.Cur, wanted), Max: max(now.Max, wanted)}
}

// onCgroupV1 says that the hierarchy at root is not the one of cgroup v2. A
// host without cgroups is not on v1.
func onCgroupV1(root string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(root, &fs) == nil && fs.Type != unix.CGROUP2_SUPER_MAGIC
}

// cgroupV1Ends is what the stock kubelet says of such a host.
const cgroupV1Ends = "cgroup v1 support is unsupported and will be removed in a future release"

func checkCgroups(v1, refused bool) error {
	if v1 && refused {
		return errors.New("kubelet is configured to not run on a host using cgroup v1. " + cgroupV1Ends + "; set failCgroupV1: false in the configuration file to run here all the same")
	}
	return nil
}

// nodeName is --hostname-override, or the host's name, in lower case.
func nodeName(override string) (string, error) {
	name := override
	if strings.TrimSpace(name) == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("the host's name: %w; set --hostname-override", err)
		}
	}
	name = strings.ToLower(strings.TrimSpace(name))
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("node name %q: %s; set --hostname-override", name, strings.Join(problems, "; "))
	}
	return name, nil
}
