package plugins

import (
	"context"
	"errors"
	"fmt"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

// Removed refuses, in words that help, the volumes that were once part of
// Kubernetes and are not any more, and those that this agent does not have. A
// vendor's plugin that stands before it can have them.
type Removed struct{}

// Name implements [volume.Plugin].
func (Removed) Name() string { return "nodekit.dev/removed" }

// Supports implements [volume.Plugin].
func (Removed) Supports(s volume.Source) bool {
	_, _, ok := removedKind(s)
	return ok
}

// Mount says why not.
func (Removed) Mount(_ context.Context, req volume.MountRequest) (volume.MountResult, error) {
	kind, instead, _ := removedKind(req.Source)
	err := fmt.Errorf("%s volumes are not supported any more: use %s", kind, instead)
	switch kind {
	case "gitRepo":
		err = errors.New("git-repo volume plugin has been disabled; use an emptyDir that an init container clones the repository into")
	case "iscsi", "fc", "flexVolume":
		err = fmt.Errorf("this agent has no %s volumes: use %s", kind, instead)
	}
	return volume.MountResult{}, reasoned.New("FailedMount", err).Final()
}

// Mounted implements [volume.Plugin]: never.
func (Removed) Mounted(context.Context, volume.MountedRequest) (volume.MountedResult, error) {
	return volume.MountedResult{}, nil
}

// Unmount has nothing to take away.
func (Removed) Unmount(context.Context, volume.UnmountRequest) error { return nil }

// removedKind names the source of such a volume, and what to use instead.
func removedKind(s volume.Source) (kind, instead string, ok bool) {
	if pv := s.PersistentVolume; pv != nil {
		p := pv.Spec.PersistentVolumeSource
		return firstRemoved(map[string]bool{
			"awsElasticBlockStore": p.AWSElasticBlockStore != nil, "azureDisk": p.AzureDisk != nil, "azureFile": p.AzureFile != nil,
			"cephfs": p.CephFS != nil, "cinder": p.Cinder != nil, "fc": p.FC != nil, "flexVolume": p.FlexVolume != nil,
			"flocker": p.Flocker != nil, "gcePersistentDisk": p.GCEPersistentDisk != nil, "glusterfs": p.Glusterfs != nil,
			"iscsi": p.ISCSI != nil, "photonPersistentDisk": p.PhotonPersistentDisk != nil, "portworxVolume": p.PortworxVolume != nil,
			"quobyte": p.Quobyte != nil, "rbd": p.RBD != nil, "scaleIO": p.ScaleIO != nil, "storageos": p.StorageOS != nil,
			"vsphereVolume": p.VsphereVolume != nil,
		})
	}
	v := s.Volume.VolumeSource
	return firstRemoved(map[string]bool{
		"awsElasticBlockStore": v.AWSElasticBlockStore != nil, "azureDisk": v.AzureDisk != nil, "azureFile": v.AzureFile != nil,
		"cephfs": v.CephFS != nil, "cinder": v.Cinder != nil, "fc": v.FC != nil, "flexVolume": v.FlexVolume != nil,
		"flocker": v.Flocker != nil, "gcePersistentDisk": v.GCEPersistentDisk != nil, "gitRepo": v.GitRepo != nil,
		"glusterfs": v.Glusterfs != nil, "iscsi": v.ISCSI != nil, "photonPersistentDisk": v.PhotonPersistentDisk != nil,
		"portworxVolume": v.PortworxVolume != nil, "quobyte": v.Quobyte != nil, "rbd": v.RBD != nil, "scaleIO": v.ScaleIO != nil,
		"storageos": v.StorageOS != nil, "vsphereVolume": v.VsphereVolume != nil,
	})
}

// firstRemoved finds the kind that is set; a volume has one at most.
func firstRemoved(set map[string]bool) (kind, instead string, ok bool) {
	for kind, is := range set {
		if is {
			return kind, replacement(kind), true
		}
	}
	return "", "", false
}

// replacement is what took the place of a kind of volume.
func replacement(kind string) string {
	driver := map[string]string{
		"awsElasticBlockStore": "ebs.csi.aws.com",
		"azureDisk":            "disk.csi.azure.com",
		"azureFile":            "file.csi.azure.com",
		"cephfs":               "cephfs.csi.ceph.com",
		"cinder":               "cinder.csi.openstack.org",
		"gcePersistentDisk":    "pd.csi.storage.gke.io",
		"iscsi":                "iscsi.csi.k8s.io",
		"portworxVolume":       "pxd.portworx.com",
		"quobyte":              "csi.quobyte.com",
		"rbd":                  "rbd.csi.ceph.com",
		"vsphereVolume":        "csi.vsphere.vmware.com",
	}[kind]
	if driver == "" {
		return "a CSI driver of its vendor, or a volume plugin of your own"
	}
	return "a PersistentVolume of the CSI driver " + driver
}
