package wire

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podspec"
	"nodekit.dev/runtime"
	"nodekit.dev/volume/selinux"
)

// aboutMachine fills in what only the machine knows and what was left empty.
func (c Config) aboutMachine() (Config, error) {
	if c.Spec.MachineMemory == 0 {
		memory, err := machineMemory("/proc/meminfo")
		if err != nil {
			return c, fmt.Errorf("the machine's memory: %w", err)
		}
		c.Spec.MachineMemory = memory
	}
	if c.Spec.ContainerHash == nil {
		c.Spec.ContainerHash = lifecycle.ContainerHash
	}
	if c.Spec.HugepageSizes == nil {
		c.Spec.HugepageSizes = hugepageSizes("/sys/kernel/mm/hugepages")
	}
	if c.Spec.HostDNS == nil && c.Host.ResolvConf != "" {
		c.Spec.HostDNS = hostDNS(c.Host.ResolvConf)
	}
	if c.Spec.NodeHosts == nil && c.Host.Hosts {
		c.Spec.NodeHosts = func() ([]byte, error) { return os.ReadFile("/etc/hosts") }
	}
	if c.Spec.Kernel == "" {
		c.Spec.Kernel = kernelRelease("/proc/sys/kernel/osrelease")
	}
	for _, path := range thermalThrottles("/sys/devices/system/cpu") {
		if !slices.Contains(c.Spec.ExtraMaskedPaths, path) {
			c.Spec.ExtraMaskedPaths = append(slices.Clip(c.Spec.ExtraMaskedPaths), path)
		}
	}
	c.Spec.AppArmor = c.Spec.AppArmor || readsAs("/sys/module/apparmor/parameters/enabled", "Y")
	c.Spec.SELinux = c.Spec.SELinux || readsAs("/sys/fs/selinux/enforce", "1")
	if !c.SELinux.Host.Enabled {
		host, err := selinux.ReadHost("/")
		if err != nil {
			c.Log.Warn("volumes are not mounted with SELinux labels, but relabeled file by file", "err", err)
			host.Enabled = false
		}
		c.SELinux.Host = host
	}
	if c.Spec.Allocatable == nil {
		c.Spec.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(goruntime.NumCPU()), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(c.Spec.MachineMemory, resource.BinarySI),
		}
	}
	return c, nil
}

// kernelRelease is empty where it can not be read.
func kernelRelease(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// thermalThrottles are what containers must not read of the machine's heat, from
// which one can guess what others compute.
func thermalThrottles(dir string) []string {
	paths, err := filepath.Glob(filepath.Join(dir, "cpu[0-9]*", "thermal_throttle"))
	if err != nil { // a pattern that is not valid, which this is not
		return nil
	}
	return paths
}

// readsAs says whether a file of the kernel holds that one word.
func readsAs(path, word string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.TrimSpace(string(text)) == word
}

// machineMemory reads MemTotal, in bytes.
func machineMemory(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kib int64
		if _, err := fmt.Sscanf(lines.Text(), "MemTotal: %d kB", &kib); err == nil {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("%s: no line MemTotal", path)
}

// hugepageSizes lists the page sizes of the kernel as cgroups spell them
// ("2MB"). A kernel without huge pages has none.
func hugepageSizes(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var sizes []string
	for _, e := range entries {
		quantity := strings.TrimSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB") + "Ki"
		q, err := resource.ParseQuantity(quantity)
		if err != nil {
			continue
		}
		sizes = append(sizes, cgroupSize(q.Value()))
	}
	return sizes
}

// cgroupSize spells bytes as the hugetlb controller does: the largest unit
// that leaves a whole number.
func cgroupSize(bytes int64) string {
	for _, unit := range []struct {
		shift uint
		name  string
	}{{30, "GB"}, {20, "MB"}, {10, "KB"}} {
		if n := bytes >> unit.shift; n > 0 && n<<unit.shift == bytes {
			return fmt.Sprintf("%d%s", n, unit.name)
		}
	}
	return fmt.Sprintf("%dB", bytes)
}

// hostDNS reads the node's resolver configuration anew for each sandbox.
func hostDNS(path string) func() (runtime.DNSConfig, error) {
	return func() (runtime.DNSConfig, error) {
		f, err := os.Open(filepath.Clean(path))
		if err != nil {
			return runtime.DNSConfig{}, err
		}
		defer f.Close()
		return podspec.ParseResolvConf(f)
	}
}
