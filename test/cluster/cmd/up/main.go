// Up starts a control plane and one containerd, prints how to use them with an
// agent by hand, and waits for Ctrl-C or SIGTERM. Then it removes all that it
// made, the agent's pods included.
//
// The first start builds the control plane, which takes about ten minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"nodekit.dev/test/cluster/install"
	"nodekit.dev/test/cluster/plane"
	"nodekit.dev/test/cluster/world"
	"nodekit.dev/test/integration/testbed"
)

func main() {
	signing := flag.Duration("signing", 0, "how long certificates of CSRs live; 0: a day")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *signing); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, signing time.Duration) (err error) {
	if err := testbed.Install(ctx); err != nil {
		return err
	}
	w, err := world.Start(ctx, world.Options{
		Together: true, Progress: os.Stderr, Plane: plane.Options{SigningDuration: signing},
	})
	if err != nil {
		return err
	}
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, w.Stop(undo))
	}()
	if err := explain(ctx, w); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// explain writes the files that an agent needs, and prints how to start it.
func explain(ctx context.Context, w *world.World) error {
	n := w.Nodes[0]
	node, err := w.Plane.NodeKubeconfig(n.Name)
	if err != nil {
		return err
	}
	token, err := w.Plane.BootstrapToken(ctx, "abcdef", 24*time.Hour)
	if err != nil {
		return err
	}
	bootstrap, err := w.Plane.TokenKubeconfig("bootstrap", token)
	if err != nil {
		return err
	}
	config := filepath.Join(n.Bed.Dir, "agent.yaml")
	if err := writeConfig(config, w, n); err != nil {
		return err
	}
	programs, err := install.ControlPlane(ctx, os.Stderr) // are there: this only finds them
	if err != nil {
		return err
	}
	fmt.Printf(`API server  %[1]s, logs in %[2]s
admin       export KUBECONFIG=%[3]s; alias kubectl=%[4]s
images      %[5]s (a shell), %[6]s (listens on port 8080)

agent       kubelet --config=%[7]s --root-dir=%[8]s --cert-dir=%[8]s/pki \
              --container-runtime-endpoint=%[9]s --node-ip=%[10]s --hostname-override=%[11]s \
              --kubeconfig=%[12]s
or, to join with a token, a new file and
              --kubeconfig=%[13]s/new.kubeconfig --bootstrap-kubeconfig=%[14]s

look inside nodectl --root-dir=%[8]s parts

Stop the agent, then this (pid %[15]d) with SIGTERM or Ctrl-C.
`, w.Plane.Server, w.Plane.Dir(), w.Plane.AdminKubeconfig, programs.Kubectl,
		testbed.BusyboxImage, testbed.WebImage,
		config, filepath.Join(n.Bed.Dir, "agent"), n.Bed.Endpoint(), n.Bed.NodeIP, n.Name,
		node, n.Bed.Dir, bootstrap, os.Getpid())
	return nil
}

// writeConfig writes the KubeletConfiguration of an agent started by hand.
func writeConfig(path string, w *world.World, n *world.Node) error {
	config := w.AgentConfig(n)
	for field, value := range map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"cgroupDriver": "cgroupfs", "cgroupRoot": n.Bed.CgroupRoot, "failCgroupV1": false,
		"podLogsDir": n.Bed.PodLogs, "healthzPort": healthzPort(n),
	} {
		config[field] = value
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// healthzPort differs between beds, so that several may be up at once.
func healthzPort(n *world.Node) int { return 11000 + int(n.Bed.Subnet.Addr().As4()[2]) }
