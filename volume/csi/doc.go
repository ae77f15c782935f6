// Package csi mounts volumes of CSI drivers: PersistentVolumes with spec.csi
// and inline volumes, as file systems and as devices.
//
//	p, err := csi.New(csi.Config{RootDir: "/var/lib/kubelet", NodeName: "n1"}, csi.Parts{Drivers: cache, Secrets: cache}, log)
//	m, err := volume.New(volume.Config{RootDir: "/var/lib/kubelet", Claims: claims}, []volume.Plugin{p}, log)
//	go p.Run(ctx)                                                              // takes leftovers away
//	err = p.Register(ctx, csi.Registration{Name: "disk.example", Endpoint: "/var/lib/kubelet/plugins/disk/csi.sock", Versions: []string{"1.0.0"}})
//	path, err := m.Mount(ctx, pod, "data")                                     // NodeStageVolume, NodePublishVolume
//
// The layout is the stock kubelet's, so that a node can be switched both ways
// (BASE is ROOT/plugins/kubernetes.io/csi):
//
//	BASE/DRIVER/SHA256(volumeHandle)/globalmount                   staging
//	BASE/DRIVER/SHA256(volumeHandle)/vol_data.json                 what is staged
//	ROOT/pods/UID/volumes/kubernetes.io~csi/NAME/mount             published
//	ROOT/pods/UID/volumes/kubernetes.io~csi/NAME/vol_data.json     what is published
//	BASE/volumeDevices/staging/PV                                  the same for block volumes
//	BASE/volumeDevices/PV/data/vol_data.json
//	BASE/volumeDevices/publish/PV/UID
//	ROOT/pods/UID/volumeDevices/kubernetes.io~csi/PV               a link to it
//	ROOT/pods/UID/plugins/kubernetes.io~csi/PV/vol_data.json       what is published (the stock kubelet has no such file)
//
// The states of a volume of a pod, kept in its vol_data.json under a key that
// the stock kubelet does not read. Each is written before the call that begins
// it, so that a crash leaves a call that is made again, which CSI allows, and
// never one that is forgotten:
//
//	(none) ──▶ preparing ──▶ publishing ──▶ published BOOT ──▶ publishing ──▶ unpublished ──▶ (none)
//
// and of its staging, which the pods on the node share:
//
//	(none) ──▶ staging ──▶ staged BOOT ──▶ staging ──▶ (none)
//
// Rules:
//
//   - Calls for one volume are made one at a time. Stats and Health give way:
//     they are cancelled when another call wants to be made.
//   - Who uses a staged volume is read from the pods' directories each time.
//     When the last pod lets go of it, it is unstaged at once; where that fails,
//     the pod's end does not wait for it: Run goes on trying. Run also unstages
//     what an earlier agent left staged that no pod uses any more.
//   - Nothing is removed while something is mounted on it.
//   - A driver that is not registered yet is an error that answers RetryAfter;
//     Parts.Wake is called for those who asked once it is.
//   - Nothing is told about a CSIDriver object that does not exist: such drivers
//     get the defaults of the API's fields.
package csi
