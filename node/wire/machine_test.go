package wire

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMachineMemory(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "meminfo"), "MemFree:  12 kB\nMemTotal:        2048 kB\n")
	if got, err := machineMemory(path); got != 2<<20 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	for _, path := range []string{write(t, filepath.Join(dir, "odd"), "MemTotal: much\n"), filepath.Join(dir, "none")} {
		if got, err := machineMemory(path); err == nil {
			t.Errorf("%s: %d without an error", path, got)
		}
	}
}

func TestHugepageSizes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"hugepages-2048kB", "hugepages-1048576kB", "hugepages-64kB", "other"} {
		write(t, filepath.Join(dir, name, "nr_hugepages"), "0\n")
	}
	if got, want := hugepageSizes(dir), []string{"1GB", "2MB", "64KB"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := hugepageSizes(filepath.Join(dir, "none")); got != nil {
		t.Errorf("without the kernel's directory: %v", got)
	}
}

func TestCgroupSize(t *testing.T) {
	for bytes, want := range map[int64]string{2 << 20: "2MB", 1 << 30: "1GB", 64 << 10: "64KB", 3 << 29: "1536MB", 512: "512B"} {
		if got := cgroupSize(bytes); got != want {
			t.Errorf("%d bytes: %s, want %s", bytes, got, want)
		}
	}
}

func TestReadsAs(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "enabled"), "Y\n")
	if !readsAs(path, "Y") || readsAs(path, "N") || readsAs(path+"x", "Y") {
		t.Error("the word is read wrongly")
	}
}

// TestHostDNSReadsAnew: the file is read for each sandbox.
func TestHostDNSReadsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	read := hostDNS(path)
	if _, err := read(); err == nil {
		t.Error("a missing file is no error")
	}
	for _, server := range []string{"192.0.2.53", "192.0.2.54"} {
		write(t, path, "nameserver "+server+"\nsearch example.test\n")
		dns, err := read()
		if err != nil || !reflect.DeepEqual(dns.Servers, []string{server}) || !reflect.DeepEqual(dns.Searches, []string{"example.test"}) {
			t.Errorf("%+v, %v", dns, err)
		}
	}
}

func TestKernelRelease(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "osrelease"), "6.1.0-18-amd64\n")
	if got := kernelRelease(path); got != "6.1.0-18-amd64" {
		t.Errorf("%q", got)
	}
	if got := kernelRelease(path + "x"); got != "" {
		t.Errorf("without the file: %q", got)
	}
}

func TestThermalThrottles(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"cpu0/thermal_throttle/count", "cpu10/thermal_throttle/count", "cpu1/topology/id", "cpufreq/thermal_throttle/x"} {
		write(t, filepath.Join(dir, path), "0\n")
	}
	want := []string{filepath.Join(dir, "cpu0/thermal_throttle"), filepath.Join(dir, "cpu10/thermal_throttle")}
	if got := thermalThrottles(dir); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
