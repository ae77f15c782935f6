package machine_test

import (
	"fmt"
	"testing/fstest"

	"nodekit.dev/resources"
	"nodekit.dev/resources/machine"
)

func Example() {
	root := fstest.MapFS{
		"proc/meminfo":                  {Data: []byte("MemTotal: 4194304 kB\n")},
		"sys/devices/system/cpu/online": {Data: []byte("0-1\n")},
	}
	facts, err := machine.Read(machine.Source{Root: root})
	if err != nil {
		fmt.Println(err)
		return
	}
	capacity := resources.Capacity(facts, resources.PodLimit{Max: 110})
	fmt.Println(capacity.Cpu(), capacity.Memory(), capacity.Pods())
	// Output: 2 4Gi 110
}
