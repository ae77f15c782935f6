package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/test/integration/testbed"
)

// readinessProbe: a Service sends to a pod as long as its probe finds it well.
func readinessProbe(t *testing.T, e *env, ns string) {
	e.watch.exceptIn(ns)
	e.applyIn(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: WEB
        args: ["-root=/etc"]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 1, failureThreshold: 2}
`)
	e.untilPods(t, patience, ns, allOf(2, ready))
	e.untilEndpoints(t, ns, 2)
	sick := e.podsIn(ns)[0]
	toggle(t, sick)
	e.untilEndpoints(t, ns, 1)
	e.untilEvent(t, ns, sick.Name, "Readiness probe failed: HTTP probe failed with statuscode: 500")
	toggle(t, sick)
	e.untilEndpoints(t, ns, 2)
	e.untilPods(t, patience, ns, allOf(2, func(p *corev1.Pod) error {
		if n := restarts(p, "web"); n != 0 {
			return fmt.Errorf("%s: %d restarts", p.Name, n)
		}
		return ready(p)
	}))
}

// livenessProbes: of each kind, a sick container is restarted within the
// probe's own grace, and users are told.
func livenessProbes(t *testing.T, e *env, ns string) {
	e.watch.exceptIn(ns)
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: http}
spec:
  terminationGracePeriodSeconds: 600
  containers:
  - name: web
    image: WEB
    args: ["-root=/etc", "-ignore-term"]
    livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, failureThreshold: 1, terminationGracePeriodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: grpc}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: WEB
    args: ["-root=/etc", "-grpc-addr=:9090"]
    livenessProbe: {grpc: {port: 9090}, periodSeconds: 1, failureThreshold: 3}
---
apiVersion: v1
kind: Pod
metadata: {name: exec}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: BUSYBOX
    command: [sh, -c, "sleep 10000"]
    env: [{name: MARK, value: /tmp/sick}]
    livenessProbe: {exec: {command: [sh, -c, "! test -e $(MARK)"]}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: tcp}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: BUSYBOX
    command: [sh, -c, "httpd -p 8080; sleep 10000"]
    livenessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1, initialDelaySeconds: 2, failureThreshold: 1}
`)
	for name, sicken := range map[string]func(p *corev1.Pod){
		"http": func(p *corev1.Pod) { toggle(t, p) },
		"grpc": func(p *corev1.Pod) { toggle(t, p) },
		"exec": func(*corev1.Pod) { e.kubectl(t, "-n", ns, "exec", "exec", "--", "touch", "/tmp/sick") },
		"tcp":  func(*corev1.Pod) { e.kubectl(t, "-n", ns, "exec", "tcp", "--", "killall", "httpd") },
	} {
		p := e.untilPod(t, patience, ns, name, ready)
		e.eventually(t, patience, func() error { return serves(t, p) })
		sicken(p)
		e.untilPod(t, patience, ns, name, func(p *corev1.Pod) error {
			if n := restarts(p, "web"); n < 1 {
				return fmt.Errorf("%s: no restart yet: %s", name, summary(p))
			}
			return ready(p)
		})
		e.untilEvent(t, ns, name, "Liveness probe failed: ")
		e.untilEvent(t, ns, name, "Container web failed liveness probe, will be restarted")
	}
	e.kubectl(t, "-n", ns, "delete", "pod", "http", "--grace-period=1")
}

// serves says whether a pod's web server is up, where it has one.
func serves(t *testing.T, p *corev1.Pod) error {
	if p.Spec.Containers[0].Image != testbed.WebImage {
		return nil
	}
	_, err := testbed.Fetch(t.Context(), "http://"+p.Status.PodIP+":8080/healthz")
	return err
}

// startupProbe: a slow starter is left alone until it has started.
func startupProbe(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: slow}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: web
    image: WEB
    args: ["-root=/etc", "-start-delay=5s"]
    startupProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, failureThreshold: 100}
    livenessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1, failureThreshold: 1}
`)
	e.untilPod(t, patience, ns, "slow", func(p *corev1.Pod) error {
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Running != nil && c.Started != nil && !*c.Started && !c.Ready {
				return nil
			}
		}
		return fmt.Errorf("not seen running and unstarted: %s", summary(p))
	})
	p := e.untilPod(t, patience, ns, "slow", ready)
	if n := restarts(p, "web"); n != 0 {
		t.Errorf("%d restarts", n)
	}
	e.untilEvent(t, ns, "slow", "Startup probe failed: ")
}

// toggle makes the web server of a pod sick, or well again.
func toggle(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if err := testbed.Post(t.Context(), "http://"+p.Status.PodIP+":8080/healthz/toggle"); err != nil {
		t.Fatal(err)
	}
}

// untilEndpoints waits until the service "web" sends to that many pods.
func (e *env) untilEndpoints(t *testing.T, ns string, want int) {
	t.Helper()
	e.eventually(t, patience, func() error {
		var list struct {
			Items []struct {
				Endpoints []struct {
					Conditions struct{ Ready bool }
				}
			}
		}
		said := e.kubectl(t, "-n", ns, "get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "json")
		if err := json.Unmarshal([]byte(said), &list); err != nil {
			return err
		}
		ready := 0
		for _, slice := range list.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready {
					ready++
				}
			}
		}
		if ready != want {
			return fmt.Errorf("%d endpoints are ready, want %d", ready, want)
		}
		return nil
	})
}

// untilEvent waits until an event of a pod says so.
func (e *env) untilEvent(t *testing.T, ns, pod, message string) {
	t.Helper()
	e.eventually(t, patience, func() error {
		said := e.kubectl(t, "-n", ns, "get", "events", "--field-selector=involvedObject.name="+pod, "-o", "jsonpath={range .items[*]}{.message}{'\\n'}{end}")
		if !strings.Contains(said, message) {
			return fmt.Errorf("no event of %s says %q, only:\n%s", pod, message, said)
		}
		return nil
	})
}
