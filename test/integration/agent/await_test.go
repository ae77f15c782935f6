package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"nodekit.dev/test/integration/testbed"
)

// patience is how long a pod may take to get where it should be, back-offs
// not counted. It is long because tests run side by side on two cores.
const patience = time.Minute

// condition says whether a pod is as wanted; the error says what is missing.
type condition func(corev1.Pod) error

// until waits until a pod is as wanted, and returns it as it is then.
func (e *env) until(t *testing.T, name string, want condition) corev1.Pod {
	t.Helper()
	return e.untilWithin(t, patience, name, want)
}

func (e *env) untilWithin(t *testing.T, limit time.Duration, name string, want condition) corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var found corev1.Pod
	err := testbed.Eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		pods, err := e.podsNamed(ctx, name)
		if err != nil {
			return err
		}
		// An old pod under the same name may still be leaving.
		errs := []error{fmt.Errorf("no pod %s is as wanted", name)}
		for _, pod := range pods {
			err := want(pod)
			if err == nil {
				found = pod
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, e.report(t, name))
	}
	return found
}

// eventually waits until check is content.
func eventually(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := testbed.Eventually(ctx, 50*time.Millisecond, func(context.Context) error { return check() })
	if err != nil {
		t.Fatal(err)
	}
}

// podsNamed are the pods that the agent knows from the manifest of that name.
func (e *env) podsNamed(ctx context.Context, name string) ([]corev1.Pod, error) {
	pods, err := e.agent.Pods(ctx)
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.Name != name+"-"+testbed.NodeName }), err
}

// report is what one wants to know of a pod when a test fails.
func (e *env) report(t *testing.T, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
	defer cancel()
	var b strings.Builder
	pods, err := e.podsNamed(ctx, name)
	fmt.Fprintf(&b, "the agent knows %d pods %s (%v)\n", len(pods), name, err)
	for _, p := range pods {
		status, _ := yaml.Marshal(p.Status)
		fmt.Fprintf(&b, "--- %s\n%s", p.UID, status)
	}
	fmt.Fprintln(&b, "--- the agent's log about it:")
	b.WriteString(grep(e.agent.Log(1_000_000), name))
	return b.String()
}

// gone waits until nothing is left of a pod: neither for the agent, nor in the
// runtime, nor on disk.
func (e *env) gone(t *testing.T, pod corev1.Pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := testbed.Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error { return e.checkGone(ctx, pod) })
	if err != nil {
		t.Fatalf("%v\n%s", err, e.report(t, strings.TrimSuffix(pod.Name, "-"+testbed.NodeName)))
	}
}

func (e *env) checkGone(ctx context.Context, pod corev1.Pod) error {
	pods, err := e.agent.Pods(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == pod.UID }) {
		return fmt.Errorf("the agent still knows pod %s %s", pod.Name, pod.UID)
	}
	sandboxes, err := e.bed.CRI().ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{uidLabel: string(pod.UID)}},
	})
	if err != nil {
		return err
	}
	if len(sandboxes.GetItems()) > 0 {
		return fmt.Errorf("the runtime still has sandboxes of %s: %v", pod.Name, sandboxes.GetItems())
	}
	dir := filepath.Join(e.agent.Root, "pods", string(pod.UID))
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s is still there", dir)
	}
	return nil
}

// uidLabel is the stock label that says to which pod something belongs.
const uidLabel = "io.kubernetes.pod.uid"

// nothingLeft waits until the agent has no pods and left nothing of any.
func (e *env) nothingLeft(ctx context.Context) error {
	return testbed.Eventually(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		pods, err := e.agent.Pods(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, p := range pods {
			errs = append(errs, fmt.Errorf("the agent still knows pod %s %s: %s\n%s", p.Name, p.UID, p.Status.Phase, e.story(string(p.UID))))
		}
		return errors.Join(append(errs, e.nothingInRuntime(ctx), e.nothingOnDisk())...)
	})
}

func (e *env) nothingInRuntime(ctx context.Context) error {
	sandboxes, err := e.bed.CRI().ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	containers, err := e.bed.CRI().ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return err
	}
	if s, c := len(sandboxes.GetItems()), len(containers.GetContainers()); s+c > 0 {
		return fmt.Errorf("the runtime still has %d sandboxes and %d containers", s, c)
	}
	return nil
}

// nothingOnDisk looks for folders, cgroups, logs and links to logs of pods.
func (e *env) nothingOnDisk() error {
	var errs []error
	for _, pattern := range []string{
		filepath.Join(e.agent.Root, "pods", "*"),
		filepath.Join(e.bed.PodLogs, "*"),
		filepath.Join(e.bed.LogLinks, "*"),
		"/sys/fs/cgroup/*" + e.bed.CgroupRoot + "/kubepods/pod*",
		"/sys/fs/cgroup/*" + e.bed.CgroupRoot + "/kubepods/*/pod*",
		"/sys/fs/cgroup" + e.bed.CgroupRoot + "/kubepods/pod*",
		"/sys/fs/cgroup" + e.bed.CgroupRoot + "/kubepods/*/pod*",
	} {
		left, err := filepath.Glob(pattern)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d left over: %s ...", len(left), left[0])
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
