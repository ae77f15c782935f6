package scenarios

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// lateObjects: pods that name what is not there yet say so in the stock words,
// and start by themselves soon after it has come, whatever their back-off is.
func lateObjects(t *testing.T, e *env, ns string) {
	e.kubectl(t, "-n", ns, "create", "service", "clusterip", "db-main", "--tcp=5432:5432")
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: late}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: files, emptyDir: {}}]
  initContainers:
  - name: writes
    image: BUSYBOX
    command: [sh, -c, "printf \"# made by init\\nFROM_FILE='one two'\\n\" > /files/env"]
    volumeMounts: [{name: files, mountPath: /files}]
  containers:
  - name: main
    image: BUSYBOX
    command: [sleep, "10000"]
    envFrom:
    - {prefix: CM_, configMapRef: {name: late}}
    - {secretRef: {name: never, optional: true}}
    env:
    - {name: PASSWORD, valueFrom: {secretKeyRef: {name: late, key: password}}}
    - {name: MAYBE, valueFrom: {configMapKeyRef: {name: late, key: nothing, optional: true}}}
    - {name: FROM_FILE, valueFrom: {fileKeyRef: {volumeName: files, path: env, key: FROM_FILE}}}
    - {name: URL, value: "db://$(DB_MAIN_SERVICE_HOST):$(DB_MAIN_SERVICE_PORT)/$(CM_name)"}
`)
	says := func(message string) func(*corev1.Pod) error {
		return func(p *corev1.Pod) error {
			for _, c := range p.Status.ContainerStatuses {
				if w := c.State.Waiting; w != nil && w.Reason == "CreateContainerConfigError" && w.Message == message {
					return nil
				}
			}
			return fmt.Errorf("the container does not say %q: %s", message, summary(p))
		}
	}
	e.untilPod(t, patience, ns, "late", says(`configmap "late" not found`))
	e.kubectl(t, "-n", ns, "create", "configmap", "late", "--from-literal=name=users")
	e.untilPod(t, patience, ns, "late", says(`secret "late" not found`))
	e.eventually(t, patience, func() error { // the back-off has grown beyond what the start below may take
		got := e.kubectl(t, "-n", ns, "get", "events", "--field-selector", "involvedObject.name=late,reason=Failed",
			"-o", `jsonpath={range .items[?(@.message=="Error: secret \"late\" not found")]}{.count}{end}`)
		if count, err := strconv.Atoi(got); err != nil || count < 4 {
			return fmt.Errorf("told %q times that the secret is missing", got)
		}
		return nil
	})
	came := time.Now()
	e.kubectl(t, "-n", ns, "create", "secret", "generic", "late", "--from-literal=password=hush")
	e.untilPod(t, patience, ns, "late", ready)
	t.Logf("ready %v after the last object was made", time.Since(came))
	address := strings.TrimSpace(e.kubectl(t, "-n", ns, "get", "service", "db-main", "-o", "jsonpath={.spec.clusterIP}"))
	got := e.kubectl(t, "-n", ns, "exec", "late", "--", "env")
	for _, want := range []string{
		"CM_name=users", "PASSWORD=hush", "FROM_FILE=one two", "URL=db://" + address + ":5432/users",
		"DB_MAIN_PORT_5432_TCP_ADDR=" + address, "KUBERNETES_SERVICE_PORT_HTTPS=443",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("the environment lacks %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "MAYBE") {
		t.Errorf("an optional variable that has no value is set:\n%s", got)
	}
}

// runtimeClass: the runtime is given the handler of the pod's class, and the
// pod's overhead comes with it.
func runtimeClass(t *testing.T, e *env, ns string) {
	class := "class-of-" + ns
	e.applyIn(t, ns, fmt.Sprintf(`
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: %s}
handler: runc
overhead: {podFixed: {memory: 16Mi}}
`, class))
	t.Cleanup(func() {
		within(t, time.Minute, func(ctx context.Context) error {
			_, err := e.Plane.Kubectl(ctx, "delete", "runtimeclass", class)
			return err
		})
	})
	e.applyIn(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: with-class}
spec:
  nodeName: node-0
  runtimeClassName: %s
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: BUSYBOX, command: [sleep, "10000"]}]
`, class))
	p := e.untilPod(t, patience, ns, "with-class", ready)
	if got := p.Spec.Overhead.Memory().String(); got != "16Mi" {
		t.Errorf("overhead %s", got)
	}
	sandboxes, err := e.node(t, "node-0").Bed.CRI().ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": string(p.UID)}},
	})
	if err != nil || len(sandboxes.GetItems()) != 1 || sandboxes.GetItems()[0].GetRuntimeHandler() != "runc" {
		t.Errorf("sandboxes %v, %v", sandboxes.GetItems(), err)
	}
}

// confinement: users, groups, capabilities, sysctls and names as the pod asks
// for them, seen from inside.
func confinement(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: confined}
spec:
  hostname: inner
  subdomain: sub
  setHostnameAsFQDN: true
  shareProcessNamespace: true
  terminationGracePeriodSeconds: 1
  securityContext:
    runAsUser: 1001
    runAsGroup: 2001
    fsGroup: 3001
    supplementalGroups: [4001]
    supplementalGroupsPolicy: Strict
    sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "80"}]
    seccompProfile: {type: RuntimeDefault}
  hostAliases: [{ip: 192.0.2.7, hostnames: [seven]}]
  containers:
  - name: main
    image: BUSYBOX
    command: [sleep, "10000"]
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}
    env:
    - {name: HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
    - {name: PODS, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}
`)
	p := e.untilPod(t, patience, ns, "confined", ready)
	inside := func(script string) string {
		return strings.TrimSpace(e.kubectl(t, "-n", ns, "exec", "confined", "--", "sh", "-c", script))
	}
	fqdn := "inner.sub." + ns + ".svc.cluster.local"
	for script, want := range map[string]string{
		"id -u; id -g; id -G": "1001\n2001\n2001 3001 4001",
		"hostname":            fqdn,
		"cat /proc/sys/net/ipv4/ip_unprivileged_port_start": "80",
		"grep -c seven /etc/hosts":                          "1",
		"grep '^Seccomp:' /proc/self/status | cut -f2":      "2",
		"grep '^NoNewPrivs:' /proc/self/status | cut -f2":   "1",
		"grep '^CapBnd:' /proc/self/status | cut -f2":       "0000000000000400",
		"touch /x 2>/dev/null || echo read-only":            "read-only",
		"echo $HOST":                                        p.Status.HostIP,
		"echo $PODS":                                        p.Status.PodIP,
	} {
		if got := inside(script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if got := p.Status.ContainerStatuses[0].User; got == nil || got.Linux == nil || got.Linux.UID != 1001 || got.Linux.GID != 2001 {
		t.Errorf("status.user %+v", got)
	}
}

// heldBack: what the node can not give keeps a pod from starting, and its events
// and status say why in the stock words.
func heldBack(t *testing.T, e *env, ns string) {
	pod := func(name, spec string) {
		e.applyIn(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: node-0
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: BUSYBOX, command: [sleep, "10000"]}]
%s`, name, spec))
	}
	pod("too-long", "  setHostnameAsFQDN: true\n  hostname: "+strings.Repeat("h", 60)+"\n  subdomain: sub\n")
	pod("own-users", "  hostUsers: false\n")
	pod("sysctl", "  securityContext: {sysctls: [{name: kernel.msgmax, value: \"1\"}]}\n")
	pod("labelled", "  nodeSelector: {kubernetes.io/os: windows}\n")
	e.kubectl(t, "-n", ns, "run", "other-os", "--image=registry.nodekit.test/busybox:1", "--labels=kubernetes.io/os=windows",
		`--overrides={"spec":{"nodeName":"node-0"}}`)
	for name, want := range map[string]string{
		"sysctl":   "SysctlForbidden Pod was rejected: forbidden sysctl: \"kernel.msgmax\" not allowlisted",
		"labelled": "NodeAffinity Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		"other-os": "PodOSSelectorNodeLabelDoesNotMatch Pod was rejected: Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
	} {
		p := e.untilPod(t, patience, ns, name, ended(corev1.PodFailed))
		if got := p.Status.Reason + " " + p.Status.Message; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"too-long":  "failed to construct FQDN from pod hostname and cluster domain, FQDN " + strings.Repeat("h", 60) + ".sub." + ns + ".svc.cluster.local is too long (64 characters is the max",
		"own-users": "can't set `spec.hostUsers: false`, runtime does not support user namespaces",
	} {
		e.eventually(t, patience, func() error {
			got := e.kubectl(t, "-n", ns, "get", "events", "--field-selector", "involvedObject.name="+name, "-o", `jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}`)
			if !strings.Contains(got, "FailedCreatePodSandBox: Failed to create pod sandbox: "+want) {
				return fmt.Errorf("no event about %s says %q:\n%s", name, want, got)
			}
			return nil
		})
		e.untilPod(t, patience, ns, name, waits("ContainerCreating"))
	}
}
