package machine

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"nodekit.dev/resources"
)

func files(of map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range of {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestRead(t *testing.T) {
	all := map[string]string{
		"proc/meminfo":                                             "MemTotal:       16384 kB\nMemFree:  1 kB\nSwapTotal:   2048 kB\n",
		"proc/sys/kernel/random/boot_id":                           "b00t\n",
		"proc/sys/kernel/osrelease":                                "6.1.0-18-amd64\n",
		"proc/self/uid_map":                                        "         0          0 4294967295\n",
		"sys/devices/system/cpu/online":                            "0-3,6\n",
		"sys/class/dmi/id/product_uuid":                            "4C4C4544\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":    "3\n",
		"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
		"etc/machine-id":                                           "9f3c\n",
		"etc/os-release":                                           "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n",
	}
	got, err := Read(Source{Root: files(all), StorageSize: func() (int64, error) { return 7 << 30, nil }})
	if err != nil {
		t.Fatal(err)
	}
	want := resources.Machine{
		MachineID: "9f3c", SystemUUID: "4C4C4544", BootID: "b00t", KernelVersion: "6.1.0-18-amd64",
		OSImage: "Debian GNU/Linux 12 (bookworm)", CPUs: 5, Memory: 16 << 20, Swap: 2 << 20, Storage: 7 << 30,
		Hugepages: []resources.Hugepages{{Size: 1 << 30}, {Size: 2 << 20, Pages: 3}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadWithout(t *testing.T) {
	memory := map[string]string{"proc/meminfo": "MemTotal: 1 kB\n"}
	got, err := Read(Source{Root: files(memory)})
	if err != nil || len(got.Hugepages) > 0 || got.CPUs < 1 || got.OSImage != "Unknown" || got.Swap != 0 || got.UserNamespace {
		t.Errorf("a machine that tells only its memory: %+v, %v", got, err)
	}
	memory["proc/self/uid_map"] = "0 100000 65536"
	memory["usr/lib/os-release"] = "ID=x\n"
	memory["var/lib/dbus/machine-id"] = "dbus"
	memory["proc/device-tree/vm,uuid"] = "power\x00"
	got, err = Read(Source{Root: files(memory)})
	if err != nil || !got.UserNamespace || got.OSImage != "Linux" || got.MachineID != "dbus" || got.SystemUUID != "power" {
		t.Errorf("the second choices: %+v, %v", got, err)
	}
	memory["sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"] = "many"
	for name, src := range map[string]Source{
		"the machine's memory: ":                 {Root: files(nil)},
		"proc/meminfo: no line MemTotal":         {Root: files(map[string]string{"proc/meminfo": ""})},
		"hugepages-2048kB/nr_hugepages":          {Root: files(memory)},
		"the size of the agent's filesystem: no": {Root: files(map[string]string{"proc/meminfo": "MemTotal: 1 kB"}), StorageSize: func() (int64, error) { return 0, errors.New("no") }},
	} {
		if _, err := Read(src); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

// TestHost reads this machine.
func TestHost(t *testing.T) {
	got, err := Read(Host(filepath.Join(t.TempDir(), "not", "made", "yet")))
	if err != nil {
		t.Fatal(err)
	}
	if got.CPUs < 1 || got.Memory < 1<<20 || got.Storage < 1<<20 || got.BootID == "" || got.KernelVersion == "" {
		t.Errorf("this machine: %+v", got)
	}
}
