package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/csidriver"
)

const (
	volumePods    = 10 // with ten volumes each
	volumeWorkers = 5
)

func volumeChurnRounds() int {
	if soaking {
		return 100
	}
	return 5
}

// TestVolumeChurn kills the agent while pods with a hundred volumes come and go.
// In the end nothing of them is mounted, no driver was called against the rules,
// and each line that a pod wrote to its claim before it was Ready is in there.
func TestVolumeChurn(t *testing.T) {
	require(t)
	csidriver.Require(t)
	e := newEnv(t, world.Options{}, world.AgentOptions{})
	ns := e.namespace(t, "volumechurn")
	e.watch.exceptIn(ns) // an agent that is killed cuts starts off
	e.applyIn(t, ns, `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: green}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: "s3cret"}
`)
	c := &volumeChurn{disk: newDisk(t, e, ns, diskOptions{Object: "{attachRequired: false, podInfoOnMount: true, volumeLifecycleModes: [Persistent, Ephemeral]}"}), written: map[string][]string{}}
	for i := range volumePods {
		c.claim(claim{name: volumePod(i), fsType: "ext4", size: "32Mi"})
	}
	for round := range volumeChurnRounds() {
		stop := c.start()
		select {
		case <-time.After(time.Second + rand.N(4*time.Second)):
		case <-t.Context().Done():
		}
		if err := c.node.Agent.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.node.Agent.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop()
		if t.Failed() {
			t.Fatalf("round %d\n%s", round, e.report())
		}
	}
	within(t, patience, c.clean)
	c.nothingLost()
	if table, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(table), c.node.Agent.Root+"/pods/") {
		t.Errorf("mounts of pods are left, %v:\n%s", err, table)
	}
}

func volumePod(i int) string { return fmt.Sprintf("pod-%d", i) }

type volumeChurn struct {
	*disk

	mu      sync.Mutex
	written map[string][]string // UIDs of pods that were Ready, by name
}

// start has pods come and go; the result waits for the last of them to be Ready.
func (c *volumeChurn) start() (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var workers sync.WaitGroup
	for w := range volumeWorkers {
		workers.Go(func() {
			for i := w; ctx.Err() == nil; i = (i + volumeWorkers) % volumePods {
				if err := c.remake(c.t.Context(), volumePod(i)); err != nil {
					c.t.Errorf("%s: %v", volumePod(i), err)
					return
				}
			}
		})
	}
	return func() { cancel(); workers.Wait() }
}

// remake deletes a pod, if it is there, and makes it anew.
func (c *volumeChurn) remake(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pods := c.core.Delete().Namespace(c.ns).Resource("pods").Name(name)
	if err := pods.Do(ctx).Error(); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete: %w", err)
	}
	if err := c.until(ctx, name, func(p *corev1.Pod) error {
		if p != nil {
			return fmt.Errorf("it is still there: %s", summary(p))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := c.core.Post().Namespace(c.ns).Resource("pods").Body(c.manifest(name)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return c.until(ctx, name, func(p *corev1.Pod) error {
		if p == nil {
			return errors.New("it is not there yet")
		}
		err := ready(p)
		if err == nil {
			c.mu.Lock()
			c.written[name] = append(c.written[name], string(p.UID))
			c.mu.Unlock()
		}
		return err
	})
}

// until waits until check is content with the pod; nil: there is none.
func (c *volumeChurn) until(ctx context.Context, name string, check func(*corev1.Pod) error) error {
	return c.pods.Until(ctx, func(all []*corev1.Pod) error {
		for _, p := range all {
			if p.Namespace == c.ns && p.Name == name {
				return check(p)
			}
		}
		return check(nil)
	})
}

// manifest is a pod with ten volumes that is Ready once it has written a line.
func (c *volumeChurn) manifest(name string) *corev1.Pod {
	inline := corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: c.name}}
	sources := []corev1.VolumeSource{
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}},
		inline, inline,
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}},
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "uid", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}},
		}}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}},
		}}},
	} // and the token that every pod has
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.TerminationGracePeriodSeconds = ptr(int64(1))
	main := corev1.Container{
		Name: "main", Image: manifest("BUSYBOX"),
		Command:        []string{"sh", "-c", "cat /v7/uid >> /v0/log && echo >> /v0/log && sync && touch /tmp/done && exec sleep 10000"},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", "/tmp/done"}}}},
	}
	for i, s := range sources {
		volume := fmt.Sprintf("v%d", i)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: s})
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: "/" + volume})
	}
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "v0", MountPath: "/sub", SubPath: "sub/path"})
	p.Spec.Containers = []corev1.Container{main}
	return p
}

// nothingLost reads what the pods wrote.
func (c *volumeChurn) nothingLost() {
	c.t.Helper()
	lines := 0
	for name, uids := range c.written {
		text, err := c.driver.ReadFile(c.t.Context(), name, "log")
		if err != nil {
			c.t.Error(err)
		}
		for _, uid := range uids {
			lines++
			if !strings.Contains(string(text), uid+"\n") {
				c.t.Errorf("what pod %s (%s) wrote is lost: %q", name, uid, text)
			}
		}
	}
	if lines == 0 {
		c.t.Error("no pod ever was Ready")
	}
	c.t.Logf("%d pods with 10 volumes each came and went", lines)
}
