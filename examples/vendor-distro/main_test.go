package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/cmd/kubelet/app"
	"nodekit.dev/examples/internal/exampletest"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

const web = `apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: default
  annotations: {vendor.example/managed: "yes", vendor.example/cpu-load-balancing: disable}
spec:
  containers:
  - name: app
    image: registry.test/app:1
    resources: {requests: {cpu: 250m}}
    env: [{name: LOGIN, valueFrom: {secretKeyRef: {name: site, key: username}}}]
    volumeMounts: [{name: site-data, mountPath: /data}]
    readinessProbe: {exec: {command: [sh, -c, echo fine]}}
  volumes: [{name: site-data, emptyDir: {}}]
`

// TestDistro runs the program and sees each override act: what it must not do,
// it does not do either, as the runtime behind it is strict.
func TestDistro(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	w.Registry("mirror.vendor.example/app:1", runtimetest.RegistryImage{Auth: &runtime.ImageAuth{Username: "u", Password: "p"}})
	clockFile := filepath.Join(t.TempDir(), "synchronized")
	args := append(exampletest.Kubelet(t, w, web, fmt.Sprintf(`---
apiVersion: vendor.example/v1
kind: Site
name: south
clockFile: %s
username: u
password: p
`, clockFile)), "--site", "north")
	program := exampletest.Program(t, args...)

	program.Await("ClockNotSet") // wait_for_clock.go
	if n := w.Calls(runtimetest.MethodRunSandbox); n != 0 {
		t.Errorf("%d sandboxes before the clock was right", n)
	}
	if err := os.WriteFile(clockFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	program.Await(`"audit" pod="web-node1" container="app"`)     // audit_hook.go, mirror.go, registry_login.go
	program.Await(`"fleet event" pod="web-node1" reason="Start`) // fleet_events.go
	program.Await(`"CPU load balancing off" pod="web-node1"`)    // unbalanced_cpus.go

	program.Await(`"own probe" pod="web-node1" type="Readiness"`) // probe_bodies.go

	pod := exampletest.Pod(t, w, "web-node1")
	cfg, _ := w.ContainerConfig(pod.Containers[0].ID)
	if !slices.Contains(cfg.Env, runtime.EnvVar{Name: "SITE", Value: "north"}) {
		t.Errorf("site_env.go: %v", cfg.Env)
	}
	if !slices.Contains(cfg.Env, runtime.EnvVar{Name: "LOGIN", Value: "u"}) {
		t.Errorf("site_secrets.go: %v", cfg.Env)
	}
	if cfg.Resources.CPUShares != 2 {
		t.Errorf("managed_pods.go: %d shares, want the 2 of a container that requests no CPU", cfg.Resources.CPUShares)
	}
	if site, err := os.ReadFile(filepath.Join(cfg.Mounts[0].HostPath, "site")); string(site) != "north" {
		t.Errorf("seeded_volume.go: %q, %v", site, err)
	}
	sandbox, _ := w.SandboxConfig(pod.Sandboxes[0].ID)
	if sandbox.Labels["vendor.example/site"] != "north" || sandbox.Annotations["vendor.example/cpu.app"] != "250m" {
		t.Errorf("siteSandbox, managed_pods.go: %v, %v", sandbox.Labels, sandbox.Annotations)
	}
	socket := filepath.Join(args[3], app.SocketName)
	if got := get(t, socket, "/site"); got != "north" {
		t.Errorf("site_route.go: %q", got)
	}
	var pods corev1.PodList
	if err := json.Unmarshal([]byte(get(t, socket, "/pods")), &pods); err != nil {
		t.Fatal(err)
	}
	conditions := pods.Items[0].Status.Conditions
	if last := conditions[len(conditions)-1]; last.Type != "vendor.example/Site" || last.Message != "north" {
		t.Errorf("site_condition.go: %+v", conditions)
	}
	program.Stop()
	exampletest.Pod(t, w, "web-node1") // runs on
}

func get(t *testing.T, socket, path string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://agent" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOverridesAreShort: ten lines inside of functions each, or the seam is not
// good enough.
func TestOverridesAreShort(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasPrefix(file, "main") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range perOption(parsed) {
			lines := 0
			for _, fn := range group {
				lines += max(1, set.Position(fn.Body.End()).Line-set.Position(fn.Body.Pos()).Line-1)
			}
			if lines > 10 {
				t.Errorf("%s: %d lines", file, lines)
			}
		}
	}
}

// perOption splits the functions of a file by the options that it makes: a
// method belongs to the option before it.
func perOption(file *ast.File) (groups [][]*ast.FuncDecl) {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if fn.Recv == nil {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], fn)
	}
	return groups
}
