// Package install builds the control plane that the cluster tests run against:
// kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and etcd,
// each from its own Go module, pinned by the go.mod files of the folders
// controlplane and etcd next to this one. Nothing but the Go module proxy is
// needed.
//
//	programs, err := install.ControlPlane(ctx, os.Stderr)
//	exec.Command(programs.Kubectl, "version")
//
// # Rules for callers
//
// The programs are kept in the user's cache folder, as containerd is (package
// testbed), and are built again only when they are not of the pinned version.
// A first build takes about ten minutes on two cores, so call ControlPlane
// outside of a test's own time limit. Several processes may call it at once:
// one builds, the others wait.
package install

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nodekit.dev/test/integration/testbed"
)

// The pinned versions. They must be those of controlplane/go.mod and
// etcd/go.mod: a build of another version is an error.
const (
	KubernetesVersion = "v1.37.2"
	EtcdVersion       = "v3.7.3"
)

// Programs are the paths of what was built.
type Programs struct {
	APIServer         string
	ControllerManager string
	Scheduler         string
	Kubectl           string
	Etcd              string
}

// component is one module folder of this tree and what is built from it.
type component struct {
	name    string // of its folder in the cache
	folder  string // below the root of the module nodekit.dev/test/cluster
	module  string // that has the version
	version string
	// packages are built; the last element of each names its program.
	packages []string
	ldflags  string
}

func kubernetes() component {
	c := component{name: "kubernetes", folder: "controlplane", module: "k8s.io/kubernetes", version: KubernetesVersion}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		c.packages = append(c.packages, "k8s.io/kubernetes/cmd/"+name)
	}
	// A release says its version by these; a plain build says v0.0.0-master.
	major, minor, _ := strings.Cut(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	for name, value := range map[string]string{
		"gitVersion": KubernetesVersion, "gitMajor": major, "gitMinor": minor, "gitCommit": "unknown", "gitTreeState": "archive",
	} {
		c.ldflags += " -X k8s.io/component-base/version." + name + "=" + value
	}
	return c
}

func etcd() component {
	return component{
		name: "etcd", folder: "etcd", module: "go.etcd.io/etcd/server/v3", version: EtcdVersion,
		packages: []string{"nodekit.dev/test/cluster/etcd"},
	}
}

// dirName is the component's folder in the cache: the version is in it.
func (c component) dirName() string {
	return c.name + "-" + c.version
}

// ControlPlane builds what is missing, tells progress what it does, and returns
// where the programs are.
func ControlPlane(ctx context.Context, progress io.Writer) (Programs, error) {
	cache, err := testbed.CacheDir()
	if err != nil {
		return Programs{}, err
	}
	for _, c := range []component{etcd(), kubernetes()} {
		if err := c.ensure(ctx, filepath.Join(cache, c.dirName()), progress); err != nil {
			return Programs{}, fmt.Errorf("install %s %s: %w", c.module, c.version, err)
		}
	}
	kube := filepath.Join(cache, kubernetes().dirName())
	return Programs{
		APIServer:         filepath.Join(kube, "kube-apiserver"),
		ControllerManager: filepath.Join(kube, "kube-controller-manager"),
		Scheduler:         filepath.Join(kube, "kube-scheduler"),
		Kubectl:           filepath.Join(kube, "kubectl"),
		Etcd:              filepath.Join(cache, etcd().dirName(), "etcd"),
	}, nil
}

// ensure builds the component's programs into dir, if they are not there.
func (c component) ensure(ctx context.Context, dir string, progress io.Writer) error {
	if c.check(dir) == nil {
		return nil
	}
	unlock, err := testbed.Lock(dir+".lock", progress)
	if err != nil {
		return err
	}
	defer unlock()
	if c.check(dir) == nil { // another process built it while we waited
		return nil
	}
	began := time.Now()
	fmt.Fprintf(progress, "building %s %s into %s; the first time takes minutes ...\n", c.module, c.version, dir)
	if err := c.build(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(progress, "built %s %s in %s\n", c.module, c.version, time.Since(began).Round(time.Second))
	return c.check(dir)
}

// build builds beside dir and moves each program in whole, so that an
// interrupted build leaves none.
func (c component) build(ctx context.Context, dir string) error {
	source, err := c.source(ctx)
	if err != nil {
		return err
	}
	tmp := dir + ".tmp"
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	args := slices.Concat([]string{"-n", "10", "go", "build", "-ldflags=-s -w" + c.ldflags, "-o", tmp + "/"}, c.packages)
	cmd := exec.CommandContext(ctx, "nice", args...)
	cmd.Dir = source
	// GOFLAGS of the caller may say -race or -mod; GOWORK may join the modules.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	for _, name := range c.programs() {
		if err := os.Rename(filepath.Join(tmp, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// source is the component's folder in this tree.
func (c component) source(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "nodekit.dev/test/cluster")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("where is the module nodekit.dev/test/cluster (run it from there): %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), c.folder), nil
}

func (c component) programs() []string {
	var names []string
	for _, p := range c.packages {
		names = append(names, filepath.Base(p))
	}
	return names
}

// check reads from the programs themselves which version they are.
func (c component) check(dir string) error {
	for _, name := range c.programs() {
		info, err := buildinfo.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		built := ""
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == c.module {
				built = m.Version
			}
		}
		if built != c.version {
			return fmt.Errorf("%s was built from %s %q, not %s: is %s/go.mod right?", name, c.module, built, c.version, c.folder)
		}
	}
	return nil
}
