package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"nodekit.dev/node/cluster"
	"nodekit.dev/node/clusterfx"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/register"
	"nodekit.dev/node/wire"
)

// TestRackLabel: what the vendor tells of the node comes where it asked to, in a
// cluster; an agent that stands alone has the same overrides.
func TestRackLabel(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {"token": "t"}}],
"clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1:6443"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := wire.Default()
	cfg.NodeName, cfg.RootDir, cfg.PodLogsDir = "node1", t.TempDir(), t.TempDir()
	joins := cluster.Default()
	joins.Certs.Kubeconfig = kubeconfig
	var registrar *register.Registrar
	opts := append(overrides(), nodefx.Config(cfg), nodefx.Supply(Site{Name: "north"}))
	if _, err := nodefx.New(append(opts, clusterfx.Join(joins), nodefx.Populate(&registrar))...); err != nil {
		t.Fatal(err)
	}
	names := registrar.SetterNames()
	if site := slices.Index(names, "site"); site < slices.Index(names, register.SetReady) {
		t.Errorf("setters %v: site is the vendor's, and comes after ready", names)
	}
	if _, err := nodefx.New(opts...); err != nil {
		t.Errorf("alone: %v", err)
	}
}
