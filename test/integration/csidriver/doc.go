// Package csidriver is a small CSI driver for tests, of the Node service only,
// that does real work: volumes are image files, attached as loop devices, with
// xfs or ext4 on them, mounted where NodeStageVolume and NodePublishVolume say.
//
//	csidriver.Require(t)
//	d, err := csidriver.New(csidriver.Config{Name: "disk.example", Dir: dir, KubeletRoot: root, NodeID: "n1"})
//	if err != nil { ... }
//	err = d.Create("vol-1", csidriver.Volume{Size: 300 << 20, FSType: "xfs"})
//	err = d.Start()
//	defer d.Stop()
//	// ... the agent mounts vol-1 ...
//	held := d.Hold(csidriver.Stage, csidriver.After, "vol-1") // the agent gets no answer until held.Release
//	faults := append(d.Violations(), d.Leaks()...)
//
// It is strict. A call that the CSI specification forbids (publish before
// stage, unstage while published, two calls at once for one volume, other
// arguments in a repeated call, a missing field or secret, a call without its
// capability) is refused, and kept for the test to read.
//
// # Rules for callers
//
// It needs root. What it knows is in its folder: the journal of all calls and
// the volumes, so that a driver of a killed process goes on where that one
// ended. One driver at a time uses a folder. The folder is the caller's to
// remove, once [Driver.Leaks] has nothing to tell.
package csidriver
