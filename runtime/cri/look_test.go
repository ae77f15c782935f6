package cri

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func podLabels(uid string) map[string]string { return map[string]string{runtime.LabelPodUID: uid} }

func apiSandbox(id, uid string, attempt uint32, created int64) *runtimeapi.PodSandbox {
	return &runtimeapi.PodSandbox{
		Id: id, State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY, CreatedAt: created, Labels: podLabels(uid),
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod-" + uid, Namespace: "ns", Uid: uid, Attempt: attempt},
	}
}

func apiContainer(id, sandbox, uid, name string, attempt uint32) *runtimeapi.Container {
	return &runtimeapi.Container{
		Id: id, PodSandboxId: sandbox, State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: 5, Labels: podLabels(uid),
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt}, ImageRef: "sha256:1",
	}
}

func TestListPods(t *testing.T) {
	f := newFake()
	foreign := apiSandbox("s9", "", 0, 1)
	foreign.Labels = nil
	f.answer("ListPodSandbox", &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{
		apiSandbox("s2", "b", 0, 1), apiSandbox("s0", "a", 0, 9), apiSandbox("s1", "a", 1, 2), foreign,
	}})
	f.answer("ListContainers", &runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{
		apiContainer("c0", "s0", "a", "web", 0), apiContainer("c1", "s1", "a", "web", 1), apiContainer("c2", "s1", "a", "init", 0),
		apiContainer("lost", "gone", "a", "old", 0), apiContainer("c9", "s9", "", "x", 0),
	}})
	var logs bytes.Buffer
	c := start(t, f, func(cfg *Config) { cfg.Log = slog.New(slog.NewTextHandler(&logs, nil)) })
	for range 3 {
		pods, err := c.ListPods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range pods {
			for _, s := range p.Sandboxes {
				got = append(got, p.Name+" "+s.ID)
			}
			for _, ctr := range p.Containers {
				got = append(got, p.Name+" "+ctr.Name+" "+ctr.ID)
			}
		}
		want := []string{"pod-a s1", "pod-a s0", "pod-a init c2", "pod-a web c1", "pod-a web c0", "pod-b s2"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	line := `msg="No PodSandBox found for the container" podSandboxId=gone containerName=old containerId=lost`
	if strings.Count(logs.String(), "No PodSandBox") != 1 || !strings.Contains(logs.String(), line) {
		t.Errorf("logged:\n%s\nwant once: %s", &logs, line)
	}
}

func TestLookPod(t *testing.T) {
	f := newFake()
	f.answer("ListPodSandbox", &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{
		apiSandbox("s0", "a", 0, 1), apiSandbox("s1", "a", 1, 2),
	}})
	f.answer("PodSandboxStatus", &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
		Id: "s1", State: runtimeapi.PodSandboxState_SANDBOX_READY, CreatedAt: 2, Labels: podLabels("a"), RuntimeHandler: "kata",
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod-a", Namespace: "ns", Uid: "a", Attempt: 1},
		Network:  &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::1"}}},
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}},
	}})
	f.answer("ListContainers", &runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{apiContainer("c1", "s1", "a", "web", 1)}})
	f.answer("ContainerStatus", &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: "c1", Metadata: &runtimeapi.ContainerMetadata{Name: "web", Attempt: 1}, State: runtimeapi.ContainerState_CONTAINER_EXITED,
		CreatedAt: 5, StartedAt: 6, FinishedAt: 7, ExitCode: 9, Reason: "Error", Message: "words",
		Image: &runtimeapi.ImageSpec{Image: "docker.io/busybox:latest", UserSpecifiedImage: "busybox"}, ImageRef: "busybox@sha256:1",
		ImageId: "sha256:2", LogPath: "/logs/c", Labels: podLabels("a"), Annotations: map[string]string{"x": "y"},
		User:       &runtimeapi.ContainerUser{Linux: &runtimeapi.LinuxContainerUser{Uid: 1, Gid: 2, SupplementalGroups: []int64{2, 3}}},
		StopSignal: runtimeapi.Signal_SIGNAL_SIGRTMINPLUS3,
		Mounts:     []*runtimeapi.Mount{{ContainerPath: "/a"}, {ContainerPath: "/b", Readonly: true, RecursiveReadOnly: true}},
	}})
	c := start(t, f)
	if err := c.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.called()
	got, err := c.LookPod(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	want := runtime.Pod{
		UID: "a", Namespace: "ns", Name: "pod-a",
		Sandboxes: []runtime.Sandbox{{
			ID: "s1", Attempt: 1, Ready: true, CreatedAt: time.Unix(0, 2), IPs: []string{"10.0.0.1", "fd00::1"}, HostNetwork: true,
			RuntimeHandler: "kata", Labels: podLabels("a"),
		}, {
			ID: "s0", CreatedAt: time.Unix(0, 1), Labels: podLabels("a"),
		}},
		Containers: []runtime.Container{{
			ID: "c1", SandboxID: "s1", Name: "web", Attempt: 1, State: runtime.ContainerExited,
			CreatedAt: time.Unix(0, 5), StartedAt: time.Unix(0, 6), FinishedAt: time.Unix(0, 7),
			ExitCode: 9, Reason: "Error", Message: "words", Image: "busybox", ImageID: "busybox@sha256:1", LogPath: "/logs/c",
			Labels: podLabels("a"), Annotations: map[string]string{"x": "y"},
			User: &runtime.ContainerUser{UID: 1, GID: 2, SupplementalGroups: []int64{2, 3}}, RecursiveReadOnly: []string{"/b"}, StopSignal: "SIGRTMIN+3",
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	calls := f.called()
	if want := []string{"ListContainers", "ListPodSandbox", "ContainerStatus", "PodSandboxStatus"}; !slices.EqualFunc(calls, want, strings.HasSuffix) {
		t.Errorf("called %v, want %v", calls, want)
	}
	for _, filter := range []map[string]string{
		f.request("ListContainers").(*runtimeapi.ListContainersRequest).Filter.LabelSelector,
		f.request("ListPodSandbox").(*runtimeapi.ListPodSandboxRequest).Filter.LabelSelector,
	} {
		if diff := cmp.Diff(podLabels("a"), filter); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSandboxAddresses(t *testing.T) {
	host := &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
		Options: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}}
	for name, tc := range map[string]struct {
		status *runtimeapi.PodSandboxStatus
		want   bool
	}{
		"an address":                   {&runtimeapi.PodSandboxStatus{Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"}}, false},
		"none":                         {&runtimeapi.PodSandboxStatus{Network: &runtimeapi.PodSandboxNetworkStatus{}}, true},
		"the host's network":           {&runtimeapi.PodSandboxStatus{Network: &runtimeapi.PodSandboxNetworkStatus{}, Linux: host}, false},
		"a runtime that tells nothing": {&runtimeapi.PodSandboxStatus{}, false},
	} {
		if got := seenSandbox(tc.status).NoAddress; got != tc.want {
			t.Errorf("%s: NoAddress %v", name, got)
		}
	}
}

func TestLookPodWhileThingsGo(t *testing.T) {
	gone := status.Error(codes.NotFound, "gone")
	f := newFake()
	f.answer("ListPodSandbox", &runtimeapi.ListPodSandboxResponse{Items: []*runtimeapi.PodSandbox{apiSandbox("s1", "a", 1, 2)}})
	f.answer("ListContainers", &runtimeapi.ListContainersResponse{Containers: []*runtimeapi.Container{apiContainer("c1", "s1", "a", "web", 0)}})
	f.answer("PodSandboxStatus", gone)
	f.answer("ContainerStatus", gone)
	c := start(t, f)
	if p, err := c.LookPod(t.Context(), "a"); err != nil || !p.Empty() {
		t.Errorf("LookPod = %+v, %v; want an empty pod", p, err)
	}
	f.answer("ContainerStatus", status.Error(codes.Internal, "broken"))
	if _, err := c.LookPod(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), `ContainerStatus "c1"`) {
		t.Errorf("LookPod = %v; want it to name the container", err)
	}
}

func TestLookAtAPodThatIsNotThere(t *testing.T) {
	f := newFake()
	f.answer("ListPodSandbox", &runtimeapi.ListPodSandboxResponse{})
	f.answer("ListContainers", &runtimeapi.ListContainersResponse{})
	if p, err := start(t, f).LookPod(t.Context(), "a"); err != nil || !p.Empty() || p.UID != "a" {
		t.Errorf("LookPod = %+v, %v", p, err)
	}
}

func TestStatus(t *testing.T) {
	cond := func(kind string, ok bool, reason string) *runtimeapi.RuntimeCondition {
		return &runtimeapi.RuntimeCondition{Type: kind, Status: ok, Reason: reason, Message: reason + " words"}
	}
	told := func(ok bool, reason string) runtime.Condition {
		return runtime.Condition{Known: true, Ready: ok, Reason: reason, Message: reason + " words"}
	}
	for _, tt := range []struct {
		conditions []*runtimeapi.RuntimeCondition
		want       runtime.Status
	}{
		{[]*runtimeapi.RuntimeCondition{cond("RuntimeReady", true, ""), cond("NetworkReady", true, "")},
			runtime.Status{RuntimeReady: true, NetworkReady: true, Runtime: told(true, ""), Network: told(true, "")}},
		{[]*runtimeapi.RuntimeCondition{cond("NetworkReady", false, "NoCNI"), cond("RuntimeReady", true, "")},
			runtime.Status{RuntimeReady: true, Runtime: told(true, ""), Network: told(false, "NoCNI"), Reason: "NoCNI", Message: "NoCNI words"}},
		{[]*runtimeapi.RuntimeCondition{cond("NetworkReady", false, "NoCNI"), cond("RuntimeReady", false, "Broken")},
			runtime.Status{Runtime: told(false, "Broken"), Network: told(false, "NoCNI"), Reason: "Broken", Message: "Broken words"}},
		{nil, runtime.Status{
			Runtime: runtime.Condition{Known: true, Reason: "NotReported", Message: "the runtime does not report RuntimeReady"},
			Network: runtime.Condition{Known: true, Reason: "NotReported", Message: "the runtime does not report NetworkReady"},
			Reason:  "NotReported", Message: "the runtime does not report RuntimeReady"}},
	} {
		f := newFake()
		f.answer("Status", &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: tt.conditions}})
		got, err := start(t, f).Status(t.Context())
		tt.want.Name, tt.want.Version, tt.want.APIVersion = "fake", "1.2.3", "v1"
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
}

func TestStatusTellsHandlersAndFeatures(t *testing.T) {
	handler := func(name string, readOnly, users bool) *runtimeapi.RuntimeHandler {
		return &runtimeapi.RuntimeHandler{Name: name, Features: &runtimeapi.RuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: readOnly, UserNamespaces: users}}
	}
	f := newFake()
	f.answer("Status", &runtimeapi.StatusResponse{
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{handler("runc", true, true), handler("", true, false), handler("kata", false, true)},
		Features:        &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true, MountOptions: true},
	})
	got, err := start(t, f).Status(t.Context())
	want := []runtime.Handler{
		{Name: "", RecursiveReadOnlyMounts: true},
		{Name: "kata", UserNamespaces: true},
		{Name: "runc", RecursiveReadOnlyMounts: true, UserNamespaces: true},
	}
	if diff := cmp.Diff(want, got.Handlers); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if diff := cmp.Diff(&runtime.Features{SupplementalGroupsPolicy: true, MountOptions: true}, got.Features); diff != "" {
		t.Error(diff)
	}
}
