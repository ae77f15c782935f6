// Package stats measures the volumes of pods: how much they hold, how much they
// could, and, where a driver tells, whether they are sound.
//
//	m, err := stats.New(stats.Default(), volumes, log) // volumes is a *volume.Manager
//	go m.Run(ctx)
//	m.Follow(pod)                     // and again whenever the pod changed
//	for _, s := range m.Snapshot(uid) { // what was measured last; never blocks
//		fmt.Println(s.Volume, *s.Used)
//	}
//	m.Forget(uid)
//
// How a volume is measured, unless [Config.Readers] has one for its plugin:
//
//   - a file system of its own (tmpfs, NFS, a local disk) is asked: statfs
//   - a block device: its size
//   - a directory with a project quota ([Projects]) is read from there: fsquota
//   - any other directory is walked: du, which follows no symlink, enters no
//     mount and counts hard links once
//
// Rules:
//
//   - Measuring is background work: walks rest between their slices of time, run
//     at the lowest priority of CPU and disk, and come back the later the longer
//     they took.
//   - A call that hangs holds up no other volume. There is at most one call in
//     flight per volume: one that does not end is given up and told of, once, and
//     the volume is measured again when it has ended after all. The last figures
//     stay.
//   - hostPath and image volumes are not measured: what is there is not the pod's.
//   - Volumes that are not mounted have no figures.
//   - All methods are safe for concurrent use; none but Run blocks.
package stats
