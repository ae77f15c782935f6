package testbed_test

import (
	"context"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/integration/testbed"
)

// Two beds apart are as two machines: each reaches the other's node, host ports
// and pods, and the same host port may be taken on both.
func TestApart(t *testing.T) {
	testbed.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var beds []*testbed.Bed
	var pods []string
	for range 2 {
		bed, err := testbed.Start(ctx, testbed.Options{Apart: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := bed.Stop(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
			checkNothingLeft(t, bed)
		})
		container := runWebPod(ctx, t, bed)
		beds, pods = append(beds, bed), append(pods, podIP(ctx, t, bed, container))
	}
	for i, from := range beds {
		to := 1 - i
		for _, address := range []string{beds[to].NodeIP.String() + "/18080", pods[to] + "/8080", pods[i] + "/8080"} {
			get := `exec 3<>/dev/tcp/` + address + `; printf 'GET /passwd HTTP/1.0\r\n\r\n' >&3; cat <&3`
			out, err := from.Command(ctx, "bash", "-c", get).Output()
			if err != nil || !strings.Contains(string(out), "nobody") {
				t.Errorf("from bed %d, %s: %q, %v", i, address, out, err)
			}
		}
	}
	rules, err := beds[0].Command(ctx, "iptables", "-w", "-t", "nat", "-S").Output()
	if err != nil || !strings.Contains(string(rules), beds[0].Bridge) || strings.Contains(string(rules), beds[1].Bridge+`\"`) {
		t.Errorf("the host ports of a bed are not in its own namespace alone (%v):\n%s", err, rules)
	}
}

// podIP is the address of the pod that a container is in.
func podIP(ctx context.Context, t *testing.T, bed *testbed.Bed, container string) string {
	t.Helper()
	list, err := bed.CRI().ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{Id: container}})
	if err != nil || len(list.Containers) != 1 {
		t.Fatalf("containers %s: %v, %v", container, list.GetContainers(), err)
	}
	reply, err := bed.CRI().PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: list.Containers[0].PodSandboxId})
	if err != nil {
		t.Fatal(err)
	}
	return reply.Status.Network.Ip
}
