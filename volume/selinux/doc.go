// Package selinux says which SELinux label a volume is mounted with, so that its
// files need not be relabeled one by one: the stock kubelet's rules for
// seLinuxOptions, seLinuxChangePolicy and seLinuxMount of CSI drivers.
//
//	host, err := selinux.ReadHost("/")
//	labels, err := selinux.New(selinux.Config{Host: host, OneUser: true, AllVolumes: true})
//	volumeConfig.Labels = labels
//
// A volume gets a label when
//
//   - the host has SELinux, and the volume's CSI driver says seLinuxMount ([volume.Source.SELinuxMount]);
//   - all containers that mount it have the same label, which a level is part of:
//     without one it is the runtime that chooses, and nobody can know;
//   - the pod's seLinuxChangePolicy is not Recursive.
//
// What has no label is left to the runtime, file by file. One volume has one
// label on a node: a pod that needs another one waits until the others are gone
// (FailedMount). After a restart that is known from what the volume manager
// recorded.
//
// [FileLabel] and [Wanted] are pure. [Labels] is safe for concurrent use.
package selinux
