package plane

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// setUpObjects is what kubeadm makes for nodes that bootstrap.
//
//go:embed setup.yaml
var setUpObjects string

// setUp makes the objects that every test needs, and waits until pods can be
// made in the namespace default.
func (p *Plane) setUp(ctx context.Context) error {
	if err := p.Apply(ctx, setUpObjects); err != nil {
		return err
	}
	_, err := p.Kubectl(ctx, "wait", "--for=create", "serviceaccount/default", "configmap/kube-root-ca.crt", "--timeout=60s")
	return err
}

// KubectlCommand is kubectl as the admin, ready to be given stdin and stdout.
func (p *Plane) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.options.Programs.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.AdminKubeconfig, "KUBECACHEDIR="+p.path("kubectl-cache"))
	// A child of kubectl that holds its output open must not hold us.
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Kubectl runs kubectl as the admin and returns what it printed to stdout. Its
// stderr is part of the error.
func (p *Plane) Kubectl(ctx context.Context, args ...string) (string, error) {
	return run(p.KubectlCommand(ctx, args...))
}

// Apply makes or changes objects written in YAML.
func (p *Plane) Apply(ctx context.Context, objects string) error {
	cmd := p.KubectlCommand(ctx, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(objects)
	_, err := run(cmd)
	return err
}

// BootstrapToken makes a token that a new node may join with, which ends after
// that time, and returns it.
func (p *Plane) BootstrapToken(ctx context.Context, id string, life time.Duration) (string, error) {
	const secret = "0123456789abcdef"
	err := p.Apply(ctx, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-%[1]s, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData:
  token-id: %[1]s
  token-secret: %[2]s
  expiration: %[3]s
  usage-bootstrap-authentication: "true"
  auth-extra-groups: system:bootstrappers:kubeadm:default-node-token
`, id, secret, time.Now().Add(life).UTC().Format(time.RFC3339)))
	return id + "." + secret, err
}

func run(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
