// Package machine makes a Debian with systemd, cgroup v2 and two NUMA nodes,
// and boots it under qemu, so that tests run on what this machine may not be.
//
//	err := machine.Install(ctx, os.Stderr) // Debian packages and the image
//	m, err := machine.Start(ctx, machine.Config{Files: "/tmp/files.tar", Console: "/tmp/console.log"})
//	lines := bufio.NewScanner(m.Output) // what the guest writes to /dev/ttyS1
//	...
//	err = m.Wait()
//
// # Rules for callers
//
// The image is made once, in the user's cache folder as containerd is (package
// testbed), under a name with the hash of its recipe: another recipe is another
// image. It is never written to: each boot works on a copy that goes with it.
//
// What differs between boots comes as a tar, which is laid over the root file
// system before systemd starts: programs, units and configuration.
//
// Without KVM the machine is emulated, about ten times slower than this one;
// its clock runs with this machine's.
package machine
