// Package machine reads what a Linux machine is made of, for the node object:
// the CPUs that are online, memory, swap, huge pages, the size of a filesystem,
// the IDs of installation, hardware and boot, and the names of kernel and system.
//
//	facts, err := machine.Read(machine.Host("/var/lib/kubelet"))
//	capacity := resources.Capacity(facts, resources.PodLimit{Max: 110})
//
// Rules for callers: Read opens about ten small files of /proc, /sys and /etc
// and keeps nothing; it takes well under a millisecond, and may be called
// concurrently. What a kernel does not have (huge pages, a hardware ID) is left
// empty and is no error.
package machine
