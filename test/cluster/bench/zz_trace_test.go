package bench

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"path/filepath"
	measure "nodekit.dev/test/integration/bench"
	"time"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"nodekit.dev/test/cluster/follow"
)

func reqs(t *testing.T) {}

func TestTrace(t *testing.T) {
	ctx := t.Context()
	c, err := startCluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop(ctx)
	if p := os.Getenv("PROG"); p != "" { c.program = p }
	if err := c.startAgent(ctx, trace(t, c)...); err != nil {
		t.Fatal(err)
	}
	all := follow.New(c.api, "pods", func(ch follow.Change[*corev1.Pod]) {
		st, _ := json.Marshal(ch.New.Status.Conditions)
		_ = st
		fmt.Printf("%s watch %s gone=%v rv=%s phase=%s ready=%v del=%v\n", time.Now().UTC().Format("15:04:05.000000"), ch.New.Name, ch.Gone, ch.New.ResourceVersion, ch.New.Status.Phase, isReady(ch.New), ch.New.DeletionTimestamp != nil)
	})
	go all.Run(ctx)
	for i := range 4 {
		name := fmt.Sprintf("t-%d", i)
		fmt.Printf("%s POST %s\n", time.Now().UTC().Format("15:04:05.000000"), name)
		d, err := c.create(ctx, []string{name})
		if err != nil { t.Fatal(err) }
		fmt.Println("ready", d[0])
		time.Sleep(time.Second)
		fmt.Printf("%s DELETE %s\n", time.Now().UTC().Format("15:04:05.000000"), name)
		d, err = c.delete(ctx, []string{name})
		if err != nil { t.Fatal(err) }
		fmt.Println("gone", d[0])
		time.Sleep(500*time.Millisecond)
	}
	c.endAgent(ctx)
	exec.Command("cp", c.node().Agent.LogFile, "/tmp/apibench-agent.log").Run()
}

func trace(t *testing.T, c *cluster) []string {
	flags := []string{"--v=6"}
	if os.Getenv("CRI") != "" {
		proxy, err := measure.Record(t.Context(), c.bed().Socket, filepath.Join(c.bed().Dir, "recorder.sock"))
		if err != nil { t.Fatal(err) }
		flags = append(flags, "--container-runtime-endpoint=unix://"+proxy.Socket)
	}
	return flags
}
