package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/csidriver"
)

// TestCSIVolumes has pods use the volumes of real CSI drivers, each case its
// own, with all the controllers that have a part in it.
func TestCSIVolumes(t *testing.T) {
	require(t)
	csidriver.Require(t)
	e := newEnv(t, world.Options{}, world.AgentOptions{Config: map[string]any{"volumeStatsAggPeriod": "2s"}})
	runScenarios(t, e, []scenario{
		{"CSIPersistent", csiPersistent},
		{"CSIAttach", csiAttach},
		{"CSIInline", csiInline},
		{"CSIEphemeral", csiEphemeral},
		{"CSILateDriver", csiLateDriver},
		{"CSIGrowOnline", csiGrowOnline},
		{"CSIGrowOffline", csiGrowOffline},
		{"CSIGrowInfeasible", csiGrowInfeasible},
		{"CSIBlock", csiBlock},
		{"CSIStats", csiStats},
		{"CSINodeObject", csiNodeObject},
		{"CSIFSGroup", csiFSGroup},
		{"CSIMountGroup", csiMountGroup},
		{"CSISecrets", csiSecrets},
		{"CSIFailures", csiFailures},
	})
	for _, fault := range e.watch.drain() {
		t.Error(fault)
	}
}

// csiPersistent: two pods share a claim, one after the other gone; what they
// wrote is there for the next.
func csiPersistent(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{})
	d.claim(claim{name: "db", fsType: "ext4", size: "32Mi", pv: "mountOptions: [noatime]"})
	d.pod("db", podOptions{})
	d.ready("db")
	d.written("db")
	d.pod("reader", podOptions{source: "persistentVolumeClaim: {claimName: db, readOnly: true}", main: "cat /data/file && ! touch /data/other && exec sleep 10000"})
	d.ready("reader")
	e.eventually(t, patience, func() error {
		if said := e.kubectl(t, "-n", ns, "logs", "reader"); !strings.Contains(said, "kept\n") {
			return fmt.Errorf("the reader says %q", said)
		}
		return nil
	})
	if stage := d.call(csidriver.Stage, "db"); !slices.Equal(stage.Flags, []string{"noatime"}) {
		t.Errorf("mount flags %v", stage.Flags)
	}
	d.deletePod("db")
	d.deletePod("reader")
	d.gone()
	d.kept("db")
	d.only("db", map[csidriver.Op]int{csidriver.Stage: 1, csidriver.Publish: 2, csidriver.Unpublish: 2, csidriver.Unstage: 1})
}

// csiAttach: the volume is mounted at once when it is attached, however long
// that took, and detached when nobody uses it any more.
func csiAttach(t *testing.T, e *env, ns string) {
	attachment := map[string]string{"device": "d1"}
	d := newDisk(t, e, ns, diskOptions{Object: "{attachRequired: true}", Config: csidriver.Config{PublishContext: attachment}})
	a := newAttacher(d, attachment)
	d.claim(claim{name: "db", fsType: "ext4", size: "32Mi"})
	inUse := corev1.UniqueVolumeName("kubernetes.io/csi/" + d.name + "^db")
	d.pod("db", podOptions{})
	a.asked()
	uses := func(want bool) func([]*corev1.Node) error {
		return func(nodes []*corev1.Node) error {
			if slices.Contains(nodes[0].Status.VolumesInUse, inUse) != want {
				return fmt.Errorf("volumesInUse is %v", nodes[0].Status.VolumesInUse)
			}
			return nil
		}
	}
	e.untilNodes(t, patience, uses(true))
	select { // long enough for a back-off to show
	case <-time.After(10 * time.Second):
	case <-t.Context().Done():
	}
	if calls := d.driver.Calls("db", csidriver.Stage, csidriver.Publish); len(calls) > 0 {
		t.Fatalf("the volume was used before it was attached: %v", calls)
	}
	close(a.let)
	e.untilNodes(t, patience, func(nodes []*corev1.Node) error {
		if !slices.ContainsFunc(nodes[0].Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return v.Name == inUse }) {
			return fmt.Errorf("volumesAttached is %v", nodes[0].Status.VolumesAttached)
		}
		return nil
	})
	attached := time.Now()
	published := d.call(csidriver.Publish, "db").Ended
	t.Logf("published %v after the node was told of the attach", published.Sub(attached).Round(time.Millisecond))
	if took := published.Sub(attached); took > time.Second {
		t.Errorf("an attached volume was published %v later", took)
	}
	d.ready("db")
	d.written("db")
	d.deletePod("db")
	d.gone()
	e.untilNodes(t, patience, uses(false))
	e.eventually(t, patience, func() error {
		for _, v := range a.storage.All() {
			if v.Spec.Attacher == d.name {
				return fmt.Errorf("VolumeAttachment %s is still there", v.Name)
			}
		}
		return nil
	})
	d.kept("db")
}

// csiInline: a volume in the pod's spec, with what the driver wants to know of
// the pod, and tokens of its service account.
func csiInline(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{
		Object: `{attachRequired: false, podInfoOnMount: true, volumeLifecycleModes: [Ephemeral], tokenRequests: [{audience: vault}]}`,
	})
	d.pod("app", podOptions{source: "csi: {driver: " + d.name + ", volumeAttributes: {colour: green}}"})
	p := d.ready("app")
	call := d.driver.Calls("", csidriver.Publish)[0]
	for key, want := range map[string]string{
		"colour": "green", "csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "app",
		"csi.storage.k8s.io/pod.namespace": ns, "csi.storage.k8s.io/pod.uid": string(p.UID),
		"csi.storage.k8s.io/serviceAccount.name": "default",
	} {
		if got := call.Context[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	var tokens map[string]struct{ Token string }
	if err := json.Unmarshal([]byte(call.Context["csi.storage.k8s.io/serviceAccount.tokens"]), &tokens); err != nil {
		t.Fatal(err, call.Context)
	}
	checkToken(t, tokens["vault"].Token, ns)
	d.written(call.Volume)
	d.deletePod("app")
	d.gone()
	d.only(call.Volume, map[csidriver.Op]int{csidriver.Stage: 0, csidriver.Publish: 1, csidriver.Unpublish: 1, csidriver.Unstage: 0})
}

// csiEphemeral: the claim is made for the pod and goes with it.
func csiEphemeral(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{})
	d.claim(claim{name: "app-data", fsType: "ext4", size: "32Mi", pvOnly: true})
	d.pod("app", podOptions{source: fmt.Sprintf(
		"ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: %s, resources: {requests: {storage: 32Mi}}}}}", d.name)})
	d.ready("app")
	d.written("app-data")
	d.deletePod("app")
	d.gone()
	d.kept("app-data")
	e.kubectl(t, "-n", ns, "wait", "pvc/app-data", "--for=delete", "--timeout=60s")
}

// csiLateDriver: the pod waits for its driver, is told why, and goes on at once
// when the driver comes.
func csiLateDriver(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{Later: true})
	d.claim(claim{name: "db", fsType: "ext4", size: "32Mi"})
	d.pod("db", podOptions{spec: "nodeName: " + d.node.Name})
	e.untilEvent(t, ns, "db", "driver name "+d.name+" not found in the list of registered CSI drivers")
	select {
	case <-time.After(5 * time.Second): // by then the pod is in its back-off
	case <-t.Context().Done():
	}
	d.start()
	registered := time.Now()
	published := d.call(csidriver.Publish, "db")
	t.Logf("published %v after the driver was registered", published.Ended.Sub(registered).Round(time.Millisecond))
	if took := published.Ended.Sub(registered); took > time.Second {
		t.Errorf("the volume was published %v after its driver came", took)
	}
	d.ready("db")
	d.written("db")
}

// grown has the controllers make a volume bigger, as external-resizer does, and
// leaves it to the node.
func (d *disk) grown(name, size string) {
	d.t.Helper()
	request := `{"spec":{"resources":{"requests":{"storage":"` + size + `"}}}}`
	d.kubectl(d.t, "-n", d.ns, "patch", "pvc", name, "-p", request)
	d.kubectl(d.t, "patch", "pv", d.pvName(name), "-p", `{"spec":{"capacity":{"storage":"`+size+`"}}}`)
	d.kubectl(d.t, "-n", d.ns, "patch", "pvc", name, "--subresource=status", "-p", `{"status":{
		"allocatedResources":{"storage":"`+size+`"},
		"allocatedResourceStatuses":{"storage":"NodeResizePending"},
		"conditions":[{"type":"FileSystemResizePending","status":"True"}]}}`)
}

// pvc reads a claim.
func (d *disk) pvc(name string) *corev1.PersistentVolumeClaim {
	d.t.Helper()
	c := &corev1.PersistentVolumeClaim{}
	if err := d.core.Get().Namespace(d.ns).Resource("persistentvolumeclaims").Name(name).Do(d.t.Context()).Into(c); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// knows waits until the claim has its size and nothing is under way.
func (d *disk) knows(name, size string) {
	d.t.Helper()
	d.eventually(d.t, patience, func() error {
		c := d.pvc(name)
		left := slices.ContainsFunc(c.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Type == corev1.PersistentVolumeClaimFileSystemResizePending || c.Type == corev1.PersistentVolumeClaimNodeResizeError
		})
		if left || c.Status.Capacity.Storage().String() != size || len(c.Status.AllocatedResourceStatuses) > 0 {
			return fmt.Errorf("the claim's status is %+v", c.Status)
		}
		return nil
	})
}

// sizeAt is the size of the file system at a path, in bytes.
func sizeAt(t *testing.T, path string) int64 {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Blocks) * fs.Bsize
}

// csiGrowOnline: the file system of a running pod grows, and users are told.
func csiGrowOnline(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{})
	d.claim(claim{name: "db", fsType: "xfs"})
	d.pod("db", podOptions{})
	before := d.ready("db")
	d.written("db")
	target := d.call(csidriver.Publish, "db").Target
	small := sizeAt(t, target)
	d.grown("db", "512Mi")
	d.knows("db", "512Mi")
	if big := sizeAt(t, target); big < small+bytesOf("150Mi") {
		t.Errorf("the file system grew from %d to %d", small, big)
	}
	e.untilEvent(t, ns, "db", fmt.Sprintf("MountVolume.NodeExpandVolume succeeded for volume %q", d.pvName("db")))
	if after := d.ready("db"); restarts(after, "main") != restarts(before, "main") {
		t.Error("the container was restarted")
	}
	if call := d.call(csidriver.Expand, "db"); call.Required != bytesOf("512Mi") || call.Target != target || call.Staging == "" {
		t.Errorf("the driver was asked for %+v", call)
	}
	d.only("db", map[csidriver.Op]int{csidriver.Expand: 1})
}

// csiGrowOffline: nobody used the volume when it grew: that comes before the
// first container.
func csiGrowOffline(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{})
	d.claim(claim{name: "db", fsType: "xfs"})
	d.pod("db", podOptions{})
	d.ready("db")
	d.written("db")
	d.deletePod("db")
	d.gone()
	d.grown("db", "512Mi")
	d.pod("db", podOptions{main: "df -m /data; cat /data/file; exec sleep 10000"})
	d.ready("db")
	d.knows("db", "512Mi")
	e.eventually(t, patience, func() error {
		said := e.kubectl(t, "-n", ns, "logs", "db")
		fields := strings.Fields(said)
		if !strings.Contains(said, "kept") || len(fields) < 9 {
			return fmt.Errorf("the container says %q", said)
		}
		return nil
	})
	if size := sizeAt(t, d.driver.Calls("db", csidriver.Publish)[1].Target); size < bytesOf("400Mi") {
		t.Errorf("the file system has %d bytes", size)
	}
	d.only("db", map[csidriver.Op]int{csidriver.Expand: 1})
}

// csiGrowInfeasible: the driver can not do it: the claim says so, and nobody
// tries again.
func csiGrowInfeasible(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{})
	d.claim(claim{name: "db", fsType: "xfs"})
	d.pod("db", podOptions{})
	d.ready("db")
	d.driver.Fail(csidriver.Expand, "db", codes.OutOfRange, 100)
	d.grown("db", "512Mi")
	e.eventually(t, patience, func() error {
		c := d.pvc("db")
		for _, condition := range c.Status.Conditions {
			if condition.Type == corev1.PersistentVolumeClaimNodeResizeError &&
				c.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimNodeResizeInfeasible {
				return nil
			}
		}
		return fmt.Errorf("the claim's status is %+v", c.Status)
	})
	d.untilReason("db", "VolumeResizeFailed")
	d.only("db", map[csidriver.Op]int{csidriver.Expand: 1})
}

// untilReason waits for an event of a pod.
func (d *disk) untilReason(pod, reason string) {
	d.t.Helper()
	d.eventually(d.t, patience, func() error {
		got, err := d.reasonsOf(d.t.Context(), d.ns, pod)
		if err == nil && !strings.Contains(got, " "+reason+" ") {
			err = fmt.Errorf("no event %s, only%s", reason, got)
		}
		return err
	})
}

// csiBlock: the container has the device itself.
func csiBlock(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{})
	d.claim(claim{name: "raw", size: "16Mi", block: true})
	d.pod("raw", podOptions{
		mount: "volumeDevices: [{name: data, devicePath: /dev/disk}]",
		main:  "test -b /dev/disk && echo kept | dd of=/dev/disk conv=notrunc && sync && touch /tmp/done && exec sleep 10000",
	})
	d.ready("raw")
	e.eventually(t, patience, func() error {
		_, err := e.Plane.Kubectl(t.Context(), "-n", ns, "exec", "raw", "--", "test", "-f", "/tmp/done")
		return err
	})
	d.deletePod("raw")
	d.gone()
	file, err := os.Open(filepath.Join(d.node.Bed.Dir, "csi", ns, "volumes", "raw.img"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	start := make([]byte, 5)
	if _, err := file.Read(start); err != nil || string(start) != "kept\n" {
		t.Errorf("the device begins with %q, %v", start, err)
	}
	d.only("raw", map[csidriver.Op]int{csidriver.Stage: 1, csidriver.Publish: 1, csidriver.Unpublish: 1, csidriver.Unstage: 1})
}

// csiStats: what the driver says of a volume stands in the metrics.
func csiStats(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{})
	d.claim(claim{name: "db", fsType: "ext4", size: "64Mi"})
	d.pod("db", podOptions{})
	d.ready("db")
	d.written("db")
	size := sizeAt(t, d.call(csidriver.Publish, "db").Target)
	e.eventually(t, patience, func() error {
		said := e.proxied(t, "metrics")
		want := fmt.Sprintf(`kubelet_volume_stats_capacity_bytes{namespace="%s",persistentvolumeclaim="db"} `, ns)
		_, rest, found := strings.Cut(said, want)
		value, _, _ := strings.Cut(rest, "\n")
		var bytes float64
		if _, err := fmt.Sscan(value, &bytes); !found || err != nil || int64(bytes) != size {
			return fmt.Errorf("the capacity is %q, want %d", value, size)
		}
		for _, metric := range []string{"available_bytes", "used_bytes", "inodes", "inodes_free", "inodes_used"} {
			if !strings.Contains(said, fmt.Sprintf(`kubelet_volume_stats_%s{namespace="%s",persistentvolumeclaim="db"} `, metric, ns)) {
				return fmt.Errorf("there is no kubelet_volume_stats_%s", metric)
			}
		}
		if !strings.Contains(said, fmt.Sprintf(`kubelet_volume_metric_collection_duration_seconds_count{metric_source="%s"}`, d.name)) {
			return errors.New("nobody measured how long that took")
		}
		return nil
	})
}

// csiNodeObject: what the driver says of the node stands in CSINode and in the
// node's labels, and follows the driver.
func csiNodeObject(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{Config: csidriver.Config{
		MaxVolumes: 3, Topology: map[string]string{"topology." + ns + ".test/zone": "north"},
	}})
	says := func(limit int32) {
		t.Helper()
		e.eventually(t, patience, func() error {
			var object storagev1.CSINode
			if err := json.Unmarshal([]byte(e.kubectl(t, "get", "csinode", d.node.Name, "-o", "json")), &object); err != nil {
				return err
			}
			for _, driver := range object.Spec.Drivers {
				if driver.Name == d.name && driver.NodeID == d.node.Name && driver.Allocatable != nil && *driver.Allocatable.Count == limit &&
					slices.Equal(driver.TopologyKeys, []string{"topology." + ns + ".test/zone"}) {
					return nil
				}
			}
			return fmt.Errorf("CSINode says %+v", object.Spec.Drivers)
		})
	}
	says(3)
	e.untilNodes(t, patience, func(nodes []*corev1.Node) error {
		if got := nodes[0].Labels["topology."+ns+".test/zone"]; got != "north" {
			return fmt.Errorf("the node's label is %q", got)
		}
		return nil
	})
	if err := d.driver.Stop(); err != nil {
		t.Fatal(err)
	}
	e.eventually(t, patience, func() error {
		if said := e.kubectl(t, "get", "csinode", d.node.Name, "-o", "jsonpath={.spec.drivers[*].name}"); slices.Contains(strings.Fields(said), d.name) {
			return fmt.Errorf("a driver that is gone is still in CSINode: %s", said)
		}
		return nil
	})
	d.driver.SetMaxVolumes(5)
	d.start()
	says(5)
}

// csiFSGroup: the agent gives the files to the group, by the driver's policy.
func csiFSGroup(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{Object: "{attachRequired: false, fsGroupPolicy: File}"})
	d.claim(claim{name: "db", fsType: "ext4", size: "32Mi"})
	d.pod("db", podOptions{spec: "securityContext: {fsGroup: 4321, runAsUser: 1000, runAsGroup: 1000}"})
	d.ready("db")
	d.written("db")
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(d.call(csidriver.Publish, "db").Target, "file"), &stat); err != nil || stat.Gid != 4321 || stat.Uid != 1000 {
		t.Errorf("the file is of %d:%d, %v", stat.Uid, stat.Gid, err)
	}
	if group := d.call(csidriver.Stage, "db").Group; group != "" {
		t.Errorf("the driver was asked to use group %q", group)
	}
}

// csiMountGroup: a driver that can mount for a group is told which.
func csiMountGroup(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{
		Object: "{attachRequired: false, fsGroupPolicy: File}",
		Config: csidriver.Config{With: []csidriver.Capability{csidriver.MountGroup}},
	})
	d.claim(claim{name: "db", fsType: "ext4", size: "32Mi"})
	d.pod("db", podOptions{spec: "securityContext: {fsGroup: 4321, runAsUser: 1000, runAsGroup: 1000}"})
	d.ready("db")
	d.written("db")
	for _, op := range []csidriver.Op{csidriver.Stage, csidriver.Publish} {
		if group := d.call(op, "db").Group; group != "4321" {
			t.Errorf("%s came with group %q", op, group)
		}
	}
}

// csiSecrets: each call comes with the secret that the volume names for it. The
// driver refuses those without.
func csiSecrets(t *testing.T, e *env, ns string) {
	secret := map[string]string{"password": "s3cret"}
	d := newDisk(t, e, ns, diskOptions{Config: csidriver.Config{
		Secrets: map[csidriver.Op]map[string]string{csidriver.Stage: secret, csidriver.Publish: secret, csidriver.Expand: secret},
	}})
	e.applyIn(t, ns, `
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: "s3cret"}
`)
	ref := fmt.Sprintf("{name: keys, namespace: %s}", ns)
	d.claim(claim{name: "db", fsType: "xfs", csi: fmt.Sprintf(", nodeStageSecretRef: %[1]s, nodePublishSecretRef: %[1]s, nodeExpandSecretRef: %[1]s", ref)})
	d.pod("db", podOptions{})
	d.ready("db")
	d.grown("db", "400Mi")
	d.knows("db", "400Mi")
}

// csiFailures: a driver that fails is asked again, users are told, and all comes
// to a good end.
func csiFailures(t *testing.T, e *env, ns string) {
	d := newDisk(t, e, ns, diskOptions{})
	d.claim(claim{name: "db", fsType: "ext4", size: "32Mi"})
	d.driver.Fail(csidriver.Stage, "db", codes.Internal, 1)
	d.driver.Fail(csidriver.Publish, "db", codes.DeadlineExceeded, 1)
	d.driver.Fail(csidriver.Unpublish, "db", codes.Internal, 1)
	d.driver.Fail(csidriver.Unstage, "db", codes.Unavailable, 1)
	d.pod("db", podOptions{})
	d.ready("db")
	d.written("db")
	d.untilReason("db", "FailedMount")
	d.deletePod("db")
	d.gone()
	d.kept("db")
	codesOf := map[string]bool{}
	for _, c := range d.driver.Calls("db") {
		codesOf[c.Code] = true
	}
	if got := slices.Sorted(maps.Keys(codesOf)); !slices.Contains(got, "Internal") || !slices.Contains(got, "Unavailable") {
		t.Errorf("the driver failed only with %v", got)
	}
}

// TestCSIShared: a volume that two nodes have mounted is grown on each, at once,
// since these nodes may watch claims.
func TestCSIShared(t *testing.T) {
	require(t)
	csidriver.Require(t)
	e := newWorld(t, world.Options{Nodes: 2})
	e.apply(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: node-claims}
rules: [{apiGroups: [""], resources: [persistentvolumeclaims], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: node-claims}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: node-claims}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]
`)
	for _, n := range e.Nodes {
		if err := e.StartAgent(t.Context(), n, world.AgentOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	e.untilNodes(t, patience, e.allReady)
	ns := e.namespace(t, "csishared")
	first := newDisk(t, e, ns, diskOptions{})
	second := newDisk(t, e, ns, diskOptions{On: e.Nodes[1]})
	if err := second.driver.Create("db", csidriver.Volume{Size: bytesOf("32Mi"), FSType: "dir"}); err != nil {
		t.Fatal(err)
	}
	first.claim(claim{name: "db", fsType: "dir", size: "32Mi", mode: corev1.ReadWriteMany})
	source := "persistentVolumeClaim: {claimName: db}"
	first.pod("one", podOptions{source: source})
	second.pod("two", podOptions{source: source})
	first.ready("one")
	second.ready("two")
	first.grown("db", "64Mi")
	grew := time.Now()
	first.call(csidriver.Expand, "db")
	second.call(csidriver.Expand, "db")
	if took := time.Since(grew); took > 2*time.Second {
		t.Errorf("the nodes grew the volume only after %v", took)
	}
	first.knows("db", "64Mi")
	// An agent that starts again knows that this is done: users are told after it
	// was noted.
	first.untilReason("one", "FileSystemResizeSuccessful")
	if err := e.Nodes[0].Agent.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.Nodes[0].Agent.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.pod("three", podOptions{source: source})
	first.ready("three")
	for _, d := range []*disk{first, second} {
		d.only("db", map[csidriver.Op]int{csidriver.Expand: 1})
	}
}
