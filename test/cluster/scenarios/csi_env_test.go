package scenarios

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/test/cluster/follow"
	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/csidriver"
	"nodekit.dev/test/integration/testbed"
)

// disk is a CSI driver on a node, with the pods of one namespace that use it.
type disk struct {
	*env

	t      *testing.T
	ns     string
	name   string // of the driver, its StorageClass included
	node   *world.Node
	driver *csidriver.Driver
}

type diskOptions struct {
	csidriver.Config // without Name, Dir, KubeletRoot and NodeID

	// Object is the spec of the CSIDriver; default: no attach.
	Object string
	// Later leaves the driver to be started by the test.
	Later bool
	// On is the node; default: the first.
	On *world.Node
}

// newDisk makes a driver of the namespace's own and has it register. At the end
// nothing may be left of it, and no call may have been one that CSI forbids.
func newDisk(t *testing.T, e *env, ns string, o diskOptions) *disk {
	t.Helper()
	csidriver.Require(t)
	if o.On == nil {
		o.On = e.Nodes[0]
	}
	if o.Object == "" {
		o.Object = "{attachRequired: false}"
	}
	d := &disk{env: e, t: t, ns: ns, name: ns + ".disk.test", node: o.On}
	o.Name, o.NodeID, o.KubeletRoot = d.name, o.On.Name, o.On.Agent.Root
	o.Dir = filepath.Join(o.On.Bed.Dir, "csi", ns)
	var err error
	if d.driver, err = csidriver.New(o.Config); err != nil {
		t.Fatal(err)
	}
	e.apply(t, fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: %[1]s}
spec: %[2]s
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %[1]s}
provisioner: %[1]s
allowVolumeExpansion: true
`, d.name, o.Object))
	t.Cleanup(func() {
		within(t, patience, d.clean)
		if err := d.driver.Stop(); err != nil {
			t.Error(err)
		}
	})
	if !o.Later {
		d.start()
	}
	return d
}

// start has the driver register, and waits until the agent took it.
func (d *disk) start() {
	d.t.Helper()
	if err := d.driver.Start(); err != nil {
		d.t.Fatal(err)
	}
	within(d.t, time.Minute, d.driver.Registered)
}

// clean deletes the pods, waits until nothing of their volumes is left, and
// looks at what the driver noted.
func (d *disk) clean(ctx context.Context) error {
	_, err := d.Plane.Kubectl(ctx, "-n", d.ns, "delete", "pods", "--all", "--timeout=60s")
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = errors.Join(err, testbed.Eventually(ctx, 50*time.Millisecond, func(context.Context) error { return faults(d.driver.Leaks()) }))
	return errors.Join(err, faults(d.driver.Violations()))
}

func faults(found []string) error {
	if len(found) == 0 {
		return nil
	}
	return errors.New(strings.Join(found, "\n"))
}

// claim is a volume of the driver and the objects that name it, bound.
type claim struct {
	name   string
	size   string // such as 320Mi
	fsType string // xfs, ext4 or dir
	mode   corev1.PersistentVolumeAccessMode
	block  bool
	// pv and csi are further fields of the PersistentVolume's spec and of its csi.
	pv, csi string
	// pvOnly leaves the claim to somebody else.
	pvOnly bool
}

func bytesOf(size string) int64 {
	var n int64
	if _, err := fmt.Sscanf(size, "%dMi", &n); err != nil {
		panic(err)
	}
	return n << 20
}

func (d *disk) claim(c claim) {
	d.t.Helper()
	if c.size == "" {
		c.size = "320Mi"
	}
	if c.mode == "" {
		c.mode = corev1.ReadWriteOnce
	}
	if err := d.driver.Create(c.name, csidriver.Volume{Size: bytesOf(c.size), FSType: c.fsType}); err != nil {
		d.t.Fatal(err)
	}
	fsType, mode := "", ""
	if c.fsType != "" && c.fsType != "dir" {
		fsType = ", fsType: " + c.fsType
	}
	if c.block {
		mode = indent("volumeMode: Block")
	}
	objects := fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s-%[2]s}
spec:
  capacity: {storage: %[3]s}
  accessModes: [%[4]s]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: %[5]s
  claimRef: {namespace: %[1]s, name: %[2]s}
  csi: {driver: %[5]s, volumeHandle: %[2]s%[6]s%[7]s}
%[8]s`, d.ns, c.name, c.size, c.mode, d.name, fsType, c.csi, mode+indent(c.pv))
	if !c.pvOnly {
		objects += fmt.Sprintf(`
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[2]s}
spec:
  storageClassName: %[5]s
  volumeName: %[1]s-%[2]s
  accessModes: [%[4]s]
  resources: {requests: {storage: %[3]s}}
%[6]s`, d.ns, c.name, c.size, c.mode, d.name, mode)
	}
	d.applyIn(d.t, d.ns, objects)
	if !c.pvOnly {
		d.kubectl(d.t, "-n", d.ns, "wait", "pvc/"+c.name, "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
	}
}

func indent(line string) string {
	if line == "" {
		return ""
	}
	return "  " + line + "\n"
}

func (d *disk) pvName(claim string) string { return d.ns + "-" + claim }

// podOptions say what is out of the ordinary about a pod that writes a file.
type podOptions struct {
	source string // of the volume; default: the claim of the pod's name
	spec   string // further fields of the pod's spec
	mount  string // further fields of the volumeMount
	main   string // what the container runs
}

// pod makes a pod that writes "kept" to the file "file" of its volume, and
// returns at once.
func (d *disk) pod(name string, o podOptions) {
	d.t.Helper()
	if o.source == "" {
		o.source = "persistentVolumeClaim: {claimName: " + name + "}"
	}
	if o.main == "" {
		o.main = "echo kept > /data/file && sync && exec sleep 10000"
	}
	if o.mount == "" {
		o.mount = "volumeMounts: [{name: data, mountPath: /data}]"
	}
	d.applyIn(d.t, d.ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  nodeSelector: {kubernetes.io/hostname: %s}
%s  containers:
  - name: main
    image: BUSYBOX
    command: [sh, -c, %q]
    %s
  volumes: [{name: data, %s}]
`, name, d.node.Name, indent(o.spec), o.main, o.mount, o.source))
}

// ready waits until a pod is, and returns it.
func (d *disk) ready(name string) *corev1.Pod {
	d.t.Helper()
	return d.untilPod(d.t, patience, d.ns, name, ready)
}

func (d *disk) deletePod(name string) {
	d.t.Helper()
	d.kubectl(d.t, "-n", d.ns, "delete", "pod", name, "--timeout=60s")
}

// call waits until a call of that kind for a volume worked.
func (d *disk) call(op csidriver.Op, volume string) csidriver.Call {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	found, err := d.driver.UntilOK(ctx, op, volume)
	if err != nil {
		d.t.Fatalf("%v\n%s", err, d.report())
	}
	return found
}

// gone waits until the driver is asked for nothing any more.
func (d *disk) gone() {
	d.t.Helper()
	d.eventually(d.t, time.Minute, func() error { return faults(d.driver.Leaks()) })
}

// written waits for the file that the pod of a volume writes: it does so after
// it is Ready.
func (d *disk) written(volume string) {
	d.t.Helper()
	file := filepath.Join(d.call(csidriver.Publish, volume).Target, "file")
	d.eventually(d.t, patience, func() error {
		if text, err := os.ReadFile(file); err != nil || string(text) != "kept\n" {
			return fmt.Errorf("the file of the pod: %q, %w", text, err)
		}
		return nil
	})
}

// kept checks that a volume that is not in use has the file.
func (d *disk) kept(volume string) {
	d.t.Helper()
	if text, err := d.driver.ReadFile(d.t.Context(), volume, "file"); err != nil || string(text) != "kept\n" {
		d.t.Errorf("the file in volume %s: %q, %v", volume, text, err)
	}
}

// only checks how often each call was made for a volume.
func (d *disk) only(volume string, want map[csidriver.Op]int) {
	d.t.Helper()
	got := map[csidriver.Op]int{}
	for _, c := range d.driver.Calls(volume, slices.Collect(maps.Keys(want))...) {
		got[c.Op]++
	}
	for op, n := range want {
		if got[op] != n {
			d.t.Errorf("%d calls of %s for volume %s, want %d: %+v", got[op], op, volume, n, d.driver.Calls(volume, op))
		}
	}
}

// attacher is the external-attacher of a driver: it marks each VolumeAttachment
// attached, once it is let.
type attacher struct {
	*disk

	storage     *follow.Follower[*storagev1.VolumeAttachment]
	let         chan struct{} // closed: attaches are made
	attachments map[string]string
}

func newAttacher(d *disk, metadata map[string]string) *attacher {
	client, err := follow.Client(d.Plane.AdminKubeconfig, storagev1.SchemeGroupVersion)
	if err != nil {
		d.t.Fatal(err)
	}
	a := &attacher{disk: d, let: make(chan struct{}), attachments: metadata}
	patch := func(ctx context.Context, name string) error {
		body := fmt.Sprintf(`{"status":{"attached":true,"attachmentMetadata":{%s}}}`, jsonFields(metadata))
		return client.Patch(types.MergePatchType).Resource("volumeattachments").Name(name).SubResource("status").Body([]byte(body)).Do(ctx).Error()
	}
	seen := make(chan string, 100)
	a.storage = follow.New(client, "volumeattachments", func(c follow.Change[*storagev1.VolumeAttachment]) {
		if c.New.Spec.Attacher == d.name && !c.Gone && !c.New.Status.Attached {
			seen <- c.New.Name
		}
	})
	background(d.t, a.storage.Run)
	background(d.t, func(ctx context.Context) {
		select {
		case <-a.let:
		case <-ctx.Done():
		}
		for {
			select {
			case name := <-seen:
				if err := patch(ctx, name); err != nil && ctx.Err() == nil {
					d.t.Errorf("attach: %v", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return a
}

func jsonFields(fields map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, fmt.Sprintf("%q:%q", key, fields[key]))
	}
	return strings.Join(all, ",")
}

// asked waits for the attach-detach controller to want a volume attached.
func (a *attacher) asked() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	err := a.storage.Until(ctx, func(all []*storagev1.VolumeAttachment) error {
		for _, v := range all {
			if v.Spec.Attacher == a.name {
				return nil
			}
		}
		return errors.New("there is no VolumeAttachment")
	})
	if err != nil {
		a.t.Fatalf("%v\n%s", err, a.report())
	}
}
