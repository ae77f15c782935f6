package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/testbed"
)

// scenario is one thing that users do with a cluster.
type scenario struct {
	name string
	run  func(t *testing.T, e *env, namespace string)
}

// TestWorkloads runs what controllers make, on two nodes, side by side.
func TestWorkloads(t *testing.T) {
	require(t)
	e := newEnv(t, world.Options{Nodes: 2}, world.AgentOptions{})
	runScenarios(t, e, []scenario{
		{"Deployment", deployment},
		{"RollingUpdate", rollingUpdate},
		{"DaemonSet", daemonSet},
		{"Job", job},
		{"JobFails", jobFails},
		{"CronJob", cronJob},
		{"StatefulSet", statefulSet},
		{"Environment", environment},
		{"LateObjects", lateObjects},
		{"RuntimeClass", runtimeClass},
		{"Confinement", confinement},
		{"HeldBack", heldBack},
		{"Volumes", volumes},
		{"VolumeUpdates", volumeUpdates},
		{"Followed", followed},
		{"ReadinessGate", readinessGate},
		{"ReadinessProbe", readinessProbe},
		{"LivenessProbes", livenessProbes},
		{"StartupProbe", startupProbe},
		{"StatusFields", statusFields},
		{"GracefulDelete", gracefulDelete},
		{"Admission", admission},
		{"NamespaceDeletion", namespaceDeletion},
		{"Events", events},
	})
	for _, fault := range e.watch.drain() {
		t.Error(fault)
	}
}

// runScenarios runs each in a namespace of its own, in a group, so that the
// checks of newEnv come after the last of them.
func runScenarios(t *testing.T, e *env, list []scenario) {
	t.Run("cases", func(t *testing.T) {
		for _, s := range list {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.run(t, e, e.namespace(t, strings.ToLower(s.name)))
			})
		}
	})
}

// manifest fills in the images' names.
func manifest(text string) string {
	return strings.NewReplacer("BUSYBOX", testbed.BusyboxImage, "WEB", testbed.WebImage).Replace(text)
}

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  minReadySeconds: 1
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 2}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: web
        image: WEB
        args: ["-root=/etc"]
`

// deployment: all replicas come up, on both nodes, and serve.
func deployment(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, webDeployment)
	e.kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=110s")
	nodes := map[string]bool{}
	e.untilPods(t, patience, ns, allOf(4, ready))
	for _, p := range e.podsIn(ns) {
		nodes[p.Spec.NodeName] = true
		page, err := testbed.Fetch(t.Context(), "http://"+p.Status.PodIP+":8080/passwd")
		if err != nil || !strings.Contains(page, "nobody") {
			t.Errorf("%s: %q, %v", p.Name, page, err)
		}
	}
	if len(nodes) != len(e.Nodes) {
		t.Errorf("4 replicas are on the nodes %v only", nodes)
	}
	e.kubectl(t, "-n", ns, "scale", "deployment/web", "--replicas=1")
	e.untilPods(t, patience, ns, allOf(1, ready))
}

// rollingUpdate: at no moment are fewer pods ready than the deployment allows.
func rollingUpdate(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, webDeployment)
	e.kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=110s")
	old := map[types.UID]bool{}
	for _, p := range e.podsIn(ns) {
		old[p.UID] = true
	}
	e.kubectl(t, "-n", ns, "set", "env", "deployment/web", "VERSION=2")
	fewest := 4
	e.untilPods(t, patience, ns, func(pods []*corev1.Pod) error {
		available, fresh := 0, 0
		for _, p := range pods {
			if ready(p) == nil && p.DeletionTimestamp == nil {
				available++
				if !old[p.UID] {
					fresh++
				}
			}
		}
		fewest = min(fewest, available)
		if fresh < 4 || len(pods) != 4 {
			return fmt.Errorf("%d pods, %d of the new ones are ready", len(pods), fresh)
		}
		return nil
	})
	if fewest < 4 {
		t.Errorf("only %d pods were ready at some moment; maxUnavailable is 0", fewest)
	}
	e.kubectl(t, "-n", ns, "rollout", "undo", "deployment/web")
	e.kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=110s")
}

// daemonSet: one on each node, also after it was changed.
func daemonSet(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 5
      hostNetwork: true
      containers:
      - {name: main, image: BUSYBOX, command: [sh, -c, "trap 'exit 0' TERM; sleep 10000 & wait"]}
`)
	onEach := func(pods []*corev1.Pod) error {
		nodes := map[string]int{}
		for _, p := range pods {
			if err := ready(p); err != nil {
				return err
			}
			nodes[p.Spec.NodeName]++
			if p.Status.PodIP != p.Status.HostIP {
				return fmt.Errorf("%s is of the host's network and has the IP %s, not %s", p.Name, p.Status.PodIP, p.Status.HostIP)
			}
		}
		if len(nodes) != len(e.Nodes) || len(pods) != len(e.Nodes) {
			return fmt.Errorf("pods per node: %v", nodes)
		}
		return nil
	}
	e.untilPods(t, patience, ns, onEach)
	e.kubectl(t, "-n", ns, "set", "env", "daemonset/agent", "VERSION=2")
	e.kubectl(t, "-n", ns, "rollout", "status", "daemonset/agent", "--timeout=110s")
	e.untilPods(t, patience, ns, onEach)
}

func job(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: batch/v1
kind: Job
metadata: {name: sum}
spec:
  completions: 6
  parallelism: 3
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: BUSYBOX, command: [sh, -c, "echo index $JOB_COMPLETION_INDEX"]}
`)
	e.kubectl(t, "-n", ns, "wait", "--for=condition=complete", "job/sum", "--timeout=110s")
	e.untilPods(t, patience, ns, allOf(6, ended(corev1.PodSucceeded)))
	said := e.kubectl(t, "-n", ns, "logs", "-l", "job-name=sum", "--tail=-1")
	for i := range 6 {
		if !strings.Contains(said, fmt.Sprintf("index %d\n", i)) {
			t.Errorf("no pod said index %d:\n%s", i, said)
		}
	}
}

// jobFails: a container that fails is tried again by the policy, and the exit
// code reaches the API.
func jobFails(t *testing.T, e *env, ns string) {
	e.watch.exceptIn(ns)
	e.applyIn(t, ns, `
apiVersion: batch/v1
kind: Job
metadata: {name: bad}
spec:
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: BUSYBOX, command: [sh, -c, "echo why > /dev/termination-log; exit 7"]}
`)
	e.kubectl(t, "-n", ns, "wait", "--for=condition=failed", "job/bad", "--timeout=110s")
	e.untilPods(t, patience, ns, allOf(2, ended(corev1.PodFailed)))
	for _, p := range e.podsIn(ns) {
		if x := p.Status.ContainerStatuses[0].State.Terminated; x == nil || x.ExitCode != 7 || x.Reason != "Error" || x.Message != "why\n" {
			t.Errorf("%s ended with %+v", p.Name, x)
		}
	}
}

// cronJob: the controller starts it each minute.
func cronJob(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - {name: main, image: BUSYBOX, command: ["true"]}
`)
	e.kubectl(t, "-n", ns, "wait", "--for=jsonpath={.status.lastSuccessfulTime}", "cronjob/tick", "--timeout=150s")
}

// statefulSet: pods come in order, keep their names, and come back.
func statefulSet(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: db
        image: BUSYBOX
        command: [sh, -c, "trap 'exit 0' TERM; hostname -f; sleep 10000 & wait"]
`)
	e.kubectl(t, "-n", ns, "rollout", "status", "statefulset/db", "--timeout=110s")
	var before *corev1.Pod
	for i := range 3 {
		name := fmt.Sprintf("db-%d", i)
		p := e.untilPod(t, patience, ns, name, ready)
		if i > 0 && readySince(p).Before(readySince(before)) {
			t.Errorf("%s was ready before %s", p.Name, before.Name)
		}
		before = p
		want := name + ".db." + ns + ".svc.cluster.local"
		if got := strings.TrimSpace(e.kubectl(t, "-n", ns, "logs", name)); got != want {
			t.Errorf("the full hostname of %s is %q, want %q", name, got, want)
		}
	}
	e.kubectl(t, "-n", ns, "delete", "pod", "db-1", "--timeout=60s")
	e.untilPod(t, patience, ns, "db-1", ready)
}

func readySince(p *corev1.Pod) time.Time {
	return podCondition(p, corev1.PodReady).LastTransitionTime.Time
}

// namespaceDeletion: all that runs in it goes, and with it the namespace.
func namespaceDeletion(t *testing.T, e *env, ns string) {
	e.applyIn(t, ns, webDeployment)
	e.applyIn(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: deaf}
spec:
  terminationGracePeriodSeconds: 3
  containers:
  - {name: main, image: WEB, args: ["-ignore-term"]}
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec:
  restartPolicy: Never
  containers:
  - {name: main, image: BUSYBOX, command: ["true"]}
---
apiVersion: v1
kind: Pod
metadata: {name: never}
spec:
  containers:
  - {name: main, image: registry.nodekit.test/missing:1}
`)
	e.kubectl(t, "-n", ns, "rollout", "status", "deployment/web", "--timeout=110s")
	e.untilPod(t, patience, ns, "deaf", ready)
	e.untilPod(t, patience, ns, "done", ended(corev1.PodSucceeded))
	e.kubectl(t, "delete", "namespace", ns, "--timeout=60s")
	if left := e.podsIn(ns); len(left) > 0 {
		t.Errorf("the namespace is gone, and the follower still sees %d pods", len(left))
	}
}

func (e *env) applyIn(t *testing.T, ns, objects string) {
	t.Helper()
	cmd := e.Plane.KubectlCommand(t.Context(), "-n", ns, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest(objects))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
}

// podsIn are the pods of a namespace, as last seen.
func (e *env) podsIn(ns string) []*corev1.Pod {
	var own []*corev1.Pod
	for _, p := range e.pods.All() {
		if p.Namespace == ns {
			own = append(own, p)
		}
	}
	return own
}

// allOf wants exactly that many pods, each as wanted.
func allOf(count int, want func(*corev1.Pod) error) func([]*corev1.Pod) error {
	return func(pods []*corev1.Pod) error {
		if len(pods) != count {
			return fmt.Errorf("there are %d pods, want %d", len(pods), count)
		}
		for _, p := range pods {
			if err := want(p); err != nil {
				return err
			}
		}
		return nil
	}
}
