// Package vm runs the tests of package guest in a Debian with systemd, cgroup
// v2 and two NUMA nodes (package machine), and reports them as its own:
//
//	make vm
//	cd test/vm && go test -v -run 'TestGuest/TestMachine' .
//
// The folder files is laid over the machine's root file system. What else the
// tests find there, payload_test.go adds: the kubelet, its unit from examples,
// the configuration of kubeadm, images, and the tests themselves.
//
// A new test goes into package guest: a plain Go test that runs as root in that
// machine, with its init and its clock, one after the other (t.Parallel would
// mix their output).
package vm
