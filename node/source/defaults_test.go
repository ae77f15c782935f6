package source

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func podFrom(t *testing.T, content string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(content), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestDefault(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"a bare pod", `
spec:
  containers: [{name: a, image: web}]
`, `
spec:
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  securityContext: {}
  enableServiceLinks: true
  terminationGracePeriodSeconds: 30
  containers:
  - {name: a, image: web, imagePullPolicy: Always, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
`},
		{"what is set stays", `
spec:
  restartPolicy: Never
  dnsPolicy: Default
  schedulerName: mine
  securityContext: {runAsUser: 1}
  enableServiceLinks: false
  terminationGracePeriodSeconds: 0
  serviceAccount: old
  priorityClassName: system-node-critical
  containers:
  - {name: a, image: "web:1", imagePullPolicy: Never, terminationMessagePath: /x, terminationMessagePolicy: FallbackToLogsOnError}
`, `
spec:
  restartPolicy: Never
  dnsPolicy: Default
  schedulerName: mine
  securityContext: {runAsUser: 1}
  enableServiceLinks: false
  terminationGracePeriodSeconds: 0
  serviceAccount: old
  serviceAccountName: old
  priorityClassName: system-node-critical
  priority: 2000001000
  containers:
  - {name: a, image: "web:1", imagePullPolicy: Never, terminationMessagePath: /x, terminationMessagePolicy: FallbackToLogsOnError}
`},
		{"ports, env, probes, hooks and resources", `
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: -5
  initContainers: [{name: i, image: "init:1"}]
  containers:
  - name: a
    image: web:1
    ports: [{containerPort: 80}, {containerPort: 53, hostPort: 53, protocol: UDP}]
    env: [{name: N, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    readinessProbe: {httpGet: {port: 80}}
    livenessProbe: {grpc: {port: 9}, periodSeconds: 3}
    lifecycle: {preStop: {httpGet: {port: 80}}}
    resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 100u}}
`, `
spec:
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  securityContext: {}
  enableServiceLinks: true
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: i, image: "init:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
  containers:
  - name: a
    image: web:1
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    ports: [{containerPort: 80, hostPort: 80, protocol: TCP}, {containerPort: 53, hostPort: 53, protocol: UDP}]
    env: [{name: N, valueFrom: {fieldRef: {fieldPath: metadata.name, apiVersion: v1}}}]
    readinessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    livenessProbe: {grpc: {port: 9, service: ""}, timeoutSeconds: 1, periodSeconds: 3, successThreshold: 1, failureThreshold: 3}
    lifecycle: {preStop: {httpGet: {port: 80, path: /, scheme: HTTP}}}
    resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 1m, memory: 1Gi}}
`},
		{"volumes", `
spec:
  containers: [{name: a, image: "web:1"}]
  volumes:
  - {name: e}
  - {name: h, hostPath: {path: /x}}
  - {name: s, secret: {secretName: s}}
  - {name: c, configMap: {name: c, defaultMode: 256}}
  - {name: d, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
  - {name: p, projected: {sources: [{serviceAccountToken: {path: t}}, {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}}
  - {name: i, image: {reference: data}}
  - {name: b, rbd: {monitors: [m], image: x}}
  - {name: f, iscsi: {targetPortal: t, iqn: q, lun: 0}}
`, `
spec:
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  securityContext: {}
  enableServiceLinks: true
  terminationGracePeriodSeconds: 30
  containers:
  - {name: a, image: "web:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
  volumes:
  - {name: e, emptyDir: {}}
  - {name: h, hostPath: {path: /x, type: ""}}
  - {name: s, secret: {secretName: s, defaultMode: 420}}
  - {name: c, configMap: {name: c, defaultMode: 256}}
  - {name: d, downwardAPI: {defaultMode: 420, items: [{path: name, fieldRef: {fieldPath: metadata.name, apiVersion: v1}}]}}
  - {name: p, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}, {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name, apiVersion: v1}}]}}]}}
  - {name: i, image: {reference: data, pullPolicy: Always}}
  - {name: b, rbd: {monitors: [m], image: x, pool: rbd, user: admin, keyring: /etc/ceph/keyring}}
  - {name: f, iscsi: {targetPortal: t, iqn: q, lun: 0, iscsiInterface: default}}
`},
		{"resources of the pod", `
spec:
  resources: {limits: {cpu: "4", memory: 1Gi}}
  containers:
  - {name: a, image: "web:1", resources: {requests: {cpu: "1"}}}
  - {name: b, image: "web:1", resources: {requests: {cpu: "1"}}}
`, `
spec:
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  securityContext: {}
  enableServiceLinks: true
  terminationGracePeriodSeconds: 30
  resources: {limits: {cpu: "4", memory: 1Gi}, requests: {cpu: "2", memory: 1Gi}}
  containers:
  - {name: a, image: "web:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {requests: {cpu: "1"}}}
  - {name: b, image: "web:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {requests: {cpu: "1"}}}
`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, want := podFrom(t, c.in), podFrom(t, c.want)
			Default(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
			again := got.DeepCopy()
			Default(again)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Fatalf("not idempotent: %s", diff)
			}
		})
	}
}

func TestPullPolicyOf(t *testing.T) {
	cases := map[string]corev1.PullPolicy{
		"web": corev1.PullAlways, "web:latest": corev1.PullAlways, "localhost:5000/web": corev1.PullAlways,
		"web:1": corev1.PullIfNotPresent, "Not Valid": corev1.PullIfNotPresent,
		"web@sha256:7cc4b5aefd1d0cadf8d97d4350462ba51c694ebca145b08d7d41b41acc8db5aa": corev1.PullIfNotPresent,
	}
	for image, want := range cases {
		if got := pullPolicyOf(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}
