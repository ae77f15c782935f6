package nodemetrics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/internal/reasoned"
	"nodekit.dev/metrics"
	"nodekit.dev/metrics/internal/metricstest"
	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

var start = metav1.Unix(1000, 0)

func webPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u", CreationTimestamp: start},
		Spec:       corev1.PodSpec{InitContainers: []corev1.Container{{Name: "setup"}}, Containers: []corev1.Container{{Name: "app"}}},
	}
}

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func running(name, id string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, ContainerID: id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func ended(name, id string, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, ContainerID: id, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ContainerID: id, ExitCode: code, Reason: "Completed"},
	}}
}

// The life of a pod of the API server: seen after 1 s, its image pulled for 4
// s, running after 9 s.
func TestStartOfAPod(t *testing.T) {
	m := New(Config{NodeName: "n"})
	view := node.PodView{UID: "u", Source: "api", Pod: webPod()}
	done := func(kind lifecycle.Kind, container string, at, took float64, err error) {
		m.done(podactor.ActionInfo{UID: "u", Kind: kind, Container: container, Took: time.Duration(took * float64(time.Second)), Err: err}, after(at))
	}
	m.added(view, after(1))
	view.Status = corev1.PodStatus{Phase: corev1.PodPending}
	m.status(view, after(1))
	done(lifecycle.Admit, "", 1.5, 0.25, nil)
	done(lifecycle.RunSandbox, "", 2, 0.5, errors.New("no network"))
	done(lifecycle.RunSandbox, "", 3, 0.5, nil)
	done(lifecycle.Pull, "app", 6, 4, nil)
	done(lifecycle.StartContainer, "setup", 7, 0.5, nil)
	done(lifecycle.StartContainer, "app", 8, 0.5, reasoned.New("CreateContainerError", errors.New("no such user")))
	done(lifecycle.StartContainer, "app", 9, 0.5, nil)
	view.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, InitContainerStatuses: []corev1.ContainerStatus{ended("setup", "c0", 0)},
		ContainerStatuses: []corev1.ContainerStatus{running("app", "c1")},
	}
	m.status(view, after(9))
	m.status(view, after(10)) // nothing new
	done(lifecycle.StopContainer, "app", 20, 2, nil)
	metricstest.Want(t, m.Collectors(),
		`kubelet_pod_worker_start_duration_seconds_sum 0.25`,
		`kubelet_pod_start_duration_seconds_sum 8`, `kubelet_pod_start_total_duration_seconds_sum 9`, `kubelet_pod_start_sli_duration_seconds_sum 5`,
		`kubelet_started_pods_total 2`, `kubelet_started_pods_errors_total 1`,
		`kubelet_started_containers_total{container_type="init_container"} 1`, `kubelet_started_containers_total{container_type="container"} 2`,
		`kubelet_started_containers_errors_total{code="CreateContainerError",container_type="container"} 1`,
		`kubelet_terminated_containers_total{container_type="init_container",exit_code="0",reason="Completed"} 1`,
		`kubelet_pod_worker_duration_seconds_count{operation_type="create"} 7`, `kubelet_pod_worker_duration_seconds_sum{operation_type="kill"} 2`,
		`kubelet_containers_per_pod_count_sum 1`,
	)
	m.removed(view)
	if len(m.pods) != 0 {
		t.Error("a pod that is gone is remembered")
	}
}

// What ran or had ended before the agent came is not counted as its doing.
func TestPodOfAnEarlierAgent(t *testing.T) {
	m := New(Config{})
	view := node.PodView{UID: "u", Source: "file", Static: true, Pod: webPod(), Status: corev1.PodStatus{
		Phase: corev1.PodRunning, InitContainerStatuses: []corev1.ContainerStatus{ended("setup", "c0", 0)},
	}}
	m.added(view, after(0))
	m.status(view, after(1))
	text := metricstest.Text(t, m.Collectors())
	if strings.Contains(text, "kubelet_terminated_containers_total{") || !strings.Contains(text, "kubelet_pod_start_duration_seconds_count 0") {
		t.Error(text)
	}
}

func TestRejections(t *testing.T) {
	m := New(Config{})
	for uid, reason := range map[string]string{"a": "PodOSNotSupported", "b": "TaintToleration", "c": "OutOfexample.com/gpu"} {
		view := node.PodView{UID: uid, Pod: webPod(), Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason}}
		m.added(view, after(0))
		m.status(view, after(1))
		m.status(view, after(2))
	}
	failed := node.PodView{UID: "d", Pod: webPod(), Status: corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: "DeadlineExceeded", ContainerStatuses: []corev1.ContainerStatus{running("app", "c1")},
	}}
	m.added(failed, after(0))
	m.status(failed, after(1))
	metricstest.Want(t, m.Collectors(), `kubelet_admission_rejections_total{reason="PodOSNotSupported"} 1`,
		`kubelet_admission_rejections_total{reason="Other"} 1`, `kubelet_admission_rejections_total{reason="OutOfExtendedResources"} 1`)
}

func TestCensus(t *testing.T) {
	ready := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}}
	busy := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{running("a", "1"), ended("b", "2", 1)}, EphemeralContainerStatuses: []corev1.ContainerStatus{running("e", "3")}}
	pods := []node.PodView{
		{UID: "a", Source: "api", Pod: webPod(), Phase: lifecycle.Running, Status: busy},
		{UID: "b", Source: "file", Static: true, Pod: webPod(), Phase: lifecycle.Preparing, Status: ready},
		{UID: "c", Source: "api", Pod: webPod(), Phase: lifecycle.Stopping, Leaving: true},
		{UID: "d", Phase: lifecycle.Cleaning},
	}
	m := New(Config{NodeName: "edge-7", CgroupVersion: 2, Pods: func() []node.PodView { return pods }})
	m.added(pods[3], after(0))
	metricstest.Want(t, m.Collectors(),
		`kubelet_node_name{node="edge-7"} 1`, `kubelet_cgroup_version 2`, `kubelet_running_pods 2`,
		`kubelet_running_containers{container_state="running"} 2`, `kubelet_running_containers{container_state="exited"} 1`,
		`kubelet_desired_pods{static="false"} 1`, `kubelet_desired_pods{static="true"} 1`, `kubelet_mirror_pods 1`,
		`kubelet_active_pods{static="false"} 2`, `kubelet_active_pods{static="true"} 1`, `kubelet_managed_ephemeral_containers 1`,
		`kubelet_working_pods{config="desired",lifecycle="sync",static="false"} 1`,
		`kubelet_working_pods{config="orphan",lifecycle="terminating",static="false"} 1`,
		`kubelet_working_pods{config="runtime_only",lifecycle="terminated",static="unknown"} 1`,
		`kubelet_orphaned_runtime_pods_total 1`,
	)
}

func TestEndedContainersAreForgotten(t *testing.T) {
	h := &history{ended: map[string]bool{}}
	for i := range 3 * keepEnded {
		h.newlyEnded(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("app", fmt.Sprint("c", i), 1)}})
	}
	if len(h.ended) > keepEnded {
		t.Errorf("%d containers are remembered", len(h.ended))
	}
}

func Example() {
	m := New(Config{NodeName: "edge-7"})
	all := metrics.New()
	if err := all.Add(m.Collectors()...); err != nil {
		fmt.Println(err)
		return
	}
	m.Observer().PodAdded(node.PodView{UID: "u", Pod: webPod()})
	families, _ := all.Gather()
	for _, f := range families {
		if f.GetName() == "kubelet_containers_per_pod_count" {
			fmt.Println(f.GetMetric()[0].GetHistogram().GetSampleSum())
		}
	}
	// Output: 1
}
