package testbed_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/integration/testbed"
)

func TestBed(t *testing.T) {
	testbed.Require(t)
	for _, version := range []string{testbed.V2, testbed.V16} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			bed, err := testbed.Start(ctx, testbed.Options{Version: version})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := bed.Stop(context.WithoutCancel(ctx)); err != nil {
					t.Error(err)
				}
				checkNothingLeft(t, bed)
			})
			id := runWebPod(ctx, t, bed)
			checkRestartKeepsPod(ctx, t, bed, id)
		})
	}
}

// runWebPod runs a sandbox with the web server and a host port, and fetches a page.
func runWebPod(ctx context.Context, t *testing.T, bed *testbed.Bed) (containerID string) {
	t.Helper()
	if err := bed.Pull(ctx, testbed.WebImage); err != nil {
		t.Fatal(err)
	}
	if bed.Registry.Pulls("web") == 0 {
		t.Error("the registry did not see the pull of web")
	}
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "web-uid"},
		LogDirectory: bed.PodLogs,
		PortMappings: []*runtimeapi.PortMapping{{ContainerPort: 8080, HostPort: 18080}},
		Linux:        &runtimeapi.LinuxPodSandboxConfig{CgroupParent: bed.CgroupRoot + "/pod"},
	}
	pod, err := bed.CRI().RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: sandbox})
	if err != nil {
		t.Fatal(err)
	}
	container, err := bed.CRI().CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod.PodSandboxId, SandboxConfig: sandbox,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "web"},
			Image:    &runtimeapi.ImageSpec{Image: testbed.WebImage},
			Args:     []string{"-root=/etc", "-ignore-term"},
			LogPath:  "web.log",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bed.CRI().StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: container.ContainerId}); err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://%s:18080/passwd", bed.NodeIP)
	body, err := testbed.Fetch(ctx, url)
	if err != nil || !strings.Contains(body, "nobody") {
		t.Fatalf("GET %s: %q, %v", url, body, err)
	}
	if _, err := os.Stat(filepath.Join(bed.PodLogs, "web.log")); err != nil {
		t.Error(err)
	}
	return container.ContainerId
}

func checkRestartKeepsPod(ctx context.Context, t *testing.T, bed *testbed.Bed, id string) {
	t.Helper()
	if err := bed.KillRuntime(ctx); err != nil {
		t.Fatal(err)
	}
	if err := bed.StartRuntime(ctx); err != nil {
		t.Fatal(err)
	}
	reply, err := bed.CRI().ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		t.Fatal(err)
	}
	if got := reply.Status.State; got != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("after a restart of containerd the container is %v", got)
	}
}

func checkNothingLeft(t *testing.T, bed *testbed.Bed) {
	t.Helper()
	for _, path := range []string{bed.Dir, "/sys/class/net/" + bed.Bridge, "/run/netns/" + bed.Bridge, "/sys/fs/cgroup/memory" + bed.CgroupRoot} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left over", path)
		}
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), bed.Dir+"/") {
		t.Errorf("mounts are left over:\n%s", mounts)
	}
	if namers := processesNaming(bed.Dir); namers != "" {
		t.Errorf("still running:\n%s", namers)
	}
	if files, _ := filepath.Glob("/var/lib/cni/results/" + bed.Bridge + "-*"); len(files) > 0 {
		t.Errorf("left over: %v", files)
	}
	rules, err := exec.Command("iptables", "-w", "-t", "nat", "-S").Output()
	if err != nil || strings.Contains(string(rules), `\"`+bed.Bridge+`\"`) {
		t.Errorf("iptables still names %s (%v):\n%s", bed.Bridge, err, rules)
	}
}

// ownerEnv makes this test binary a program that starts a bed and a pod,
// prints the bed's folder and waits to be killed.
const ownerEnv = "NODEKIT_TESTBED_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) != "" {
		ownABed()
	}
	os.Exit(m.Run())
}

func ownABed() {
	ctx := context.Background()
	bed, err := testbed.Start(ctx, testbed.Options{})
	if err == nil {
		_, err = bed.CRI().RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
			Metadata:     &runtimeapi.PodSandboxMetadata{Name: "left", Namespace: "default", Uid: "left-uid"},
			PortMappings: []*runtimeapi.PortMapping{{ContainerPort: 8080, HostPort: 18081}},
			Linux:        &runtimeapi.LinuxPodSandboxConfig{},
		}})
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(bed.Dir)
	select {}
}

func TestKilledOwnerLeavesNothingForTheNext(t *testing.T) {
	testbed.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	owner := exec.CommandContext(ctx, os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"=1")
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	left, err := bufio.NewReader(stdout).ReadString('\n')
	_ = owner.Process.Kill()
	_ = owner.Wait() // it was killed
	left = strings.TrimSpace(left)
	if err != nil || !strings.HasPrefix(left, "/") {
		t.Fatalf("the owner of the bed said %q, %v", left, err)
	}
	if namers := processesNaming(left); namers == "" {
		t.Fatal("nothing outlived the owner: this test tests nothing")
	}

	bed, err := testbed.Start(ctx, testbed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if bed.Dir != left {
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s is left over", left)
		}
	}
	if reply, err := bed.CRI().ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{}); err != nil || len(reply.Items) != 0 {
		t.Errorf("a new bed holds %v, %v", reply.GetItems(), err)
	}
	if err := bed.Stop(ctx); err != nil {
		t.Error(err)
	}
	checkNothingLeft(t, bed)
}

// processesNaming returns the command lines that name a folder's content.
func processesNaming(dir string) string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if line := strings.ReplaceAll(string(text), "\x00", " "); strings.Contains(line, dir+"/") {
			found = append(found, line)
		}
	}
	return strings.Join(found, "\n")
}
