package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// admission: what a node refuses when the scheduler was not asked, with the
// stock reasons.
func admission(t *testing.T, e *env, ns string) {
	pod := func(name, spec string) {
		e.applyIn(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: node-0
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: BUSYBOX, command: [sleep, "10000"], ports: [{containerPort: 80%s}]}]
%s`, name, hostPort(name), spec))
	}
	pod("wrong-os", "  os: {name: windows}\n")
	pod("wrong-selector", "  nodeSelector: {nobody: has-this}\n")
	pod("port-first", "")
	e.untilPod(t, patience, ns, "port-first", ready)
	pod("port-second", "")
	for name, reason := range map[string]string{
		"wrong-os": "PodOSNotSupported", "wrong-selector": "NodeAffinity", "port-second": "NodePorts",
	} {
		p := e.untilPod(t, patience, ns, name, ended(corev1.PodFailed))
		if p.Status.Reason != reason || p.Status.Message == "" {
			t.Errorf("%s failed with %q: %q, want the reason %q", name, p.Status.Reason, p.Status.Message, reason)
		}
	}
}

// hostPort gives both pods whose names begin with port the same.
func hostPort(name string) string {
	if strings.HasPrefix(name, "port") {
		return ", hostPort: 18099"
	}
	return ""
}

// events: what users look for when a pod does not come up, with the stock reasons.
func events(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: fine}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: BUSYBOX, command: [sleep, "10000"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: missing}
spec:
  containers: [{name: main, image: registry.nodekit.test/missing:1}]
---
apiVersion: v1
kind: Pod
metadata: {name: no-config}
spec:
  containers: [{name: main, image: BUSYBOX, envFrom: [{configMapRef: {name: absent}}]}]
`)
	e.untilPod(t, patience, ns, "fine", ready)
	e.kubectl(t, "-n", ns, "delete", "pod", "fine", "--timeout=60s")
	want := map[string][]string{
		"fine":      {"Scheduled", "Pulled", "Created", "Started", "Killing"},
		"missing":   {"Pulling", "Failed", "BackOff"},
		"no-config": {"Failed"},
	}
	e.eventually(t, patience, func() error {
		for name, reasons := range want {
			got, err := e.reasonsOf(t.Context(), ns, name)
			if err != nil {
				return err
			}
			for _, r := range reasons {
				if !strings.Contains(got, " "+r+" ") {
					return fmt.Errorf("no event %s of pod %s, only%s", r, name, got)
				}
			}
		}
		return nil
	})
	e.untilPod(t, patience, ns, "no-config", waits("CreateContainerConfigError"))
	e.untilPod(t, patience, ns, "missing", waits("ErrImagePull", "ImagePullBackOff"))
}

func waits(reasons ...string) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		for _, c := range p.Status.ContainerStatuses {
			for _, r := range reasons {
				if c.State.Waiting != nil && c.State.Waiting.Reason == r {
					return nil
				}
			}
		}
		return fmt.Errorf("no container waits because of %v: %s", reasons, summary(p))
	}
}

// reasonsOf are the reasons of a pod's events, with blanks around each.
func (e *env) reasonsOf(ctx context.Context, ns, pod string) (string, error) {
	var list corev1.EventList
	err := e.core.Get().Namespace(ns).Resource("events").Param("fieldSelector", "involvedObject.name="+pod).Do(ctx).Into(&list)
	reasons := " "
	for _, event := range list.Items {
		reasons += event.Reason + " "
	}
	return reasons, err
}
