package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// environment: env from every source, as the container sees it.
func environment(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {COLOUR: green, level: "5"}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {PASSWORD: "s3cret"}
---
apiVersion: v1
kind: Service
metadata: {name: back-end}
spec: {clusterIP: 10.96.7.7, selector: {app: none}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: env, labels: {app: env}, annotations: {note: hello}}
spec:
  restartPolicy: Never
  hostname: given
  hostAliases: [{ip: 10.1.2.3, hostnames: [alias.test]}]
  containers:
  - name: main
    image: BUSYBOX
    command: [sh, -c, "env; cat /etc/hosts /etc/resolv.conf; echo 'args $(LEVEL) $(NOT_THERE) $$(LEVEL)'"]
    resources: {limits: {memory: 64Mi}}
    envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: keys}}, {prefix: P_, configMapRef: {name: settings}}, {configMapRef: {name: absent, optional: true}}]
    env:
    - {name: LEVEL, valueFrom: {configMapKeyRef: {name: settings, key: level}}}
    - {name: EXPANDED, value: "$(LEVEL)-$(PASSWORD)-$(NOPE)"}
    - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: NOTE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['note']"}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
    - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
    - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
`)
	p := e.untilPod(t, patience, ns, "env", ended(corev1.PodSucceeded))
	said := e.kubectl(t, "-n", ns, "logs", "env")
	for _, line := range []string{
		"COLOUR=green", "PASSWORD=s3cret", "P_COLOUR=green", "LEVEL=5", "EXPANDED=5-s3cret-$(NOPE)",
		"POD=env", "NOTE=hello", "NODE=" + p.Spec.NodeName, "HOST_IP=" + e.node(t, p.Spec.NodeName).Bed.NodeIP.String(),
		"ACCOUNT=default", "MEMORY=64", "HOSTNAME=given",
		"BACK_END_SERVICE_HOST=10.96.7.7", "BACK_END_SERVICE_PORT_HTTP=80", "KUBERNETES_SERVICE_HOST=10.96.0.1",
		"args 5 $(NOT_THERE) $(LEVEL)", "nameserver 10.96.0.10",
	} {
		if !strings.Contains("\n"+said, "\n"+line+"\n") {
			t.Errorf("the container did not say %q", line)
		}
	}
	for _, part := range []string{"POD_IP=10.213.", "10.1.2.3\talias.test", ns + ".svc.cluster.local svc.cluster.local cluster.local"} {
		if !strings.Contains(said, part) {
			t.Errorf("the container did not say %q", part)
		}
	}
	if t.Failed() {
		t.Logf("it said:\n%s", said)
	}
}

// volumes: the four that the API server's objects fill, and that their content
// follows the objects.
func volumes(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: green, other: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: "s3cret"}
---
apiVersion: v1
kind: Pod
metadata: {name: files, labels: {app: files}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: BUSYBOX
    command: [sh, -c, "sleep 10000"]
    volumeMounts:
    - {name: config, mountPath: /config}
    - {name: secret, mountPath: /secret}
    - {name: down, mountPath: /down}
    - {name: all, mountPath: /all}
  volumes:
  - {name: config, configMap: {name: settings, items: [{key: colour, path: deep/colour, mode: 0400}]}}
  - {name: secret, secret: {secretName: keys, defaultMode: 0440}}
  - {name: down, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  - name: all
    projected:
      sources:
      - {configMap: {name: settings}}
      - {secret: {name: keys}}
      - {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
      - {serviceAccountToken: {path: token, audience: test, expirationSeconds: 600}}
`)
	e.untilPod(t, patience, ns, "files", ready)
	read := func(path string) string { return e.kubectl(t, "-n", ns, "exec", "files", "--", "cat", path) }
	for path, want := range map[string]string{
		"/config/deep/colour": "green", "/secret/password": "s3cret", "/down/labels": `app="files"`,
		"/all/colour": "green", "/all/password": "s3cret", "/all/name": "files",
		"/var/run/secrets/kubernetes.io/serviceaccount/namespace": ns,
	} {
		if got := read(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if got := e.kubectl(t, "-n", ns, "exec", "files", "--", "stat", "-L", "-c", "%a", "/config/deep/colour", "/secret/password"); got != "400\n440\n" {
		t.Errorf("the modes are %q", got)
	}
	if got := e.kubectl(t, "-n", ns, "exec", "files", "--", "sh", "-c", "grep ' /secret ' /proc/mounts"); !strings.Contains(got, "tmpfs") {
		t.Errorf("a secret is not in memory: %s", got)
	}
	if got := read("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"); got != string(e.Plane.Authority.Cert) {
		t.Errorf("ca.crt is %q", got)
	}
	for _, path := range []string{"/all/token", "/var/run/secrets/kubernetes.io/serviceaccount/token"} {
		checkToken(t, read(path), ns)
	}

	e.kubectl(t, "-n", ns, "patch", "configmap", "settings", "-p", `{"data":{"colour":"red"}}`)
	e.kubectl(t, "-n", ns, "label", "pod", "files", "app=changed", "--overwrite")
	e.eventually(t, patience, func() error {
		if config, down := read("/config/deep/colour"), read("/down/labels"); config != "red" || !strings.Contains(down, `app="changed"`) {
			return fmt.Errorf("the volumes say %q and %q", config, down)
		}
		return nil
	})
}

// checkToken reads a token without checking its signature.
func checkToken(t *testing.T, token, ns string) {
	t.Helper()
	var claims struct {
		Subject string `json:"sub"`
		Expiry  int64  `json:"exp"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts: %q", len(parts), token)
	}
	if err := json.Unmarshal(decodeBase64(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + ns + ":default"; claims.Subject != want || claims.Expiry < time.Now().Unix() {
		t.Errorf("the token is of %q until %d, want %q and not expired", claims.Subject, claims.Expiry, want)
	}
}

// readinessGate: a pod is ready only when someone else says so too, and what
// that one said stays.
func readinessGate(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec:
  terminationGracePeriodSeconds: 1
  readinessGates: [{conditionType: example.com/checked}]
  containers:
  - {name: main, image: BUSYBOX, command: [sleep, "10000"]}
`)
	p := e.untilPod(t, patience, ns, "gated", func(p *corev1.Pod) error {
		if c := podCondition(p, corev1.ContainersReady); c.Status != corev1.ConditionTrue {
			return fmt.Errorf("ContainersReady is %q", c.Status)
		}
		return nil
	})
	if c := podCondition(p, corev1.PodReady); c.Status != corev1.ConditionFalse || c.Reason != "ReadinessGatesNotReady" {
		t.Errorf("before the gate is open, Ready is %+v", c)
	}
	e.kubectl(t, "-n", ns, "patch", "pod", "gated", "--subresource=status", "-p",
		`{"status":{"conditions":[{"type":"example.com/checked","status":"True"}]}}`)
	p = e.untilPod(t, patience, ns, "gated", ready)
	if c := podCondition(p, "example.com/checked"); c.Status != corev1.ConditionTrue {
		t.Errorf("the gate's own condition is %+v", c)
	}
}

// statusFields: every field that a node fills.
func statusFields(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: fields}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: BUSYBOX
    command: [sleep, "10000"]
    resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 10m, memory: 16Mi}}
    securityContext: {runAsUser: 1234, runAsGroup: 5678}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
`)
	p := e.untilPod(t, patience, ns, "fields", ready)
	s, c := p.Status, p.Status.ContainerStatuses[0]
	checks := map[string]bool{
		"phase":              s.Phase == corev1.PodRunning,
		"qosClass":           s.QOSClass == corev1.PodQOSGuaranteed,
		"hostIP":             s.HostIP == e.node(t, p.Spec.NodeName).Bed.NodeIP.String(),
		"hostIPs":            len(s.HostIPs) == 1 && s.HostIPs[0].IP == s.HostIP,
		"podIPs":             len(s.PodIPs) == 1 && s.PodIPs[0].IP == s.PodIP && s.PodIP != "",
		"startTime":          s.StartTime != nil,
		"observedGeneration": s.ObservedGeneration == p.Generation,
		"containerID":        strings.HasPrefix(c.ContainerID, "containerd://"),
		"imageID":            c.ImageID != "",
		"started":            c.Started != nil && *c.Started,
		"running":            c.State.Running != nil,
		"user":               c.User != nil && c.User.Linux != nil && c.User.Linux.UID == 1234 && c.User.Linux.GID == 5678,
		"resources":          c.Resources != nil && c.Resources.Limits.Memory().Value() == 16<<20,
		"allocatedResources": c.AllocatedResources.Memory().Value() == 16<<20,
		"volumeMounts":       len(c.VolumeMounts) == 2 && c.VolumeMounts[0].Name == "data" && c.VolumeMounts[1].ReadOnly,
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled, corev1.PodReadyToStartContainers,
	} {
		got := podCondition(p, kind)
		checks["condition "+string(kind)] = got.Status == corev1.ConditionTrue && !got.LastTransitionTime.IsZero()
	}
	for what, fine := range checks {
		if !fine {
			t.Errorf("%s is not as it should be", what)
		}
	}
	if t.Failed() {
		text, _ := json.MarshalIndent(s, "", "  ")
		t.Logf("%s", text)
	}
}

// gracefulDelete: a pod leaves the API only when its containers are gone, and
// by its own grace.
func gracefulDelete(t *testing.T, e *env, ns string) {
	e.watch.exceptIn(ns) // it is not ready while it ends
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: slow}
spec:
  terminationGracePeriodSeconds: 30
  containers:
  - name: main
    image: WEB
    args: ["-term-delay=3s"]
    lifecycle: {preStop: {sleep: {seconds: 1}}}
`)
	p := e.untilPod(t, patience, ns, "slow", ready)
	n := e.node(t, p.Spec.NodeName)
	began := time.Now()
	e.kubectl(t, "-n", ns, "delete", "pod", "slow", "--timeout=60s")
	if took := time.Since(began); took < 4*time.Second || took > 20*time.Second {
		t.Errorf("a pod that takes 4 s to end was gone after %v", took)
	}
	list, err := n.Bed.CRI().ListContainers(t.Context(), &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": string(p.UID)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Containers {
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			t.Errorf("the pod is gone from the API, and container %s still runs", c.Metadata.Name)
		}
	}
}
