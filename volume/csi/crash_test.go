package csi_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"

	"nodekit.dev/volume"
)

// TestCrashAtEveryCall ends the agent before and after each call of a driver, in
// the way of a kill: what the agent noted stays, what it knew is lost. The next
// one either goes on, or takes the pod away; nothing is left, no call is made
// that CSI forbids, and the data stays.
func TestCrashAtEveryCall(t *testing.T) {
	methods := []string{"NodeStageVolume", "NodeExpandVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"}
	for _, kind := range []string{"mount", "block", "unstaged"} {
		for _, method := range methods {
			for _, after := range []bool{false, true} {
				for _, goOn := range []bool{false, true} {
					if kind == "unstaged" && strings.HasSuffix(method, "stageVolume") || kind == "unstaged" && method == "NodeStageVolume" {
						continue
					}
					name := fmt.Sprintf("%s/%s/after=%v/goOn=%v", kind, method, after, goOn)
					t.Run(name, func(t *testing.T) { crash(t, kind, method, after, goOn) })
				}
			}
		}
	}
}

func crash(t *testing.T, kind, method string, after, goOn bool) {
	caps := allCaps
	if kind == "unstaged" {
		caps = []csipb.NodeServiceCapability_RPC_Type{csipb.NodeServiceCapability_RPC_EXPAND_VOLUME}
	}
	d, socket := startDriver(t, caps, "vol")
	root := t.TempDir()
	c := &cluster{change: func(s *volume.Source) {
		s.ClaimSize = 1 << 20
		if kind == "block" {
			asBlock(s)
		}
	}}
	agent := func() *volume.Manager { return manager(t, root, c, newPlugin(t, root, socket, parts(c))) }

	ctx, kill := context.WithCancel(t.Context())
	killed := false
	d.meet = func(_ context.Context, met string, done bool) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if met == method && done == after && !killed {
			killed = true
			kill() // the driver works on: it may finish what it was told
		}
		return nil
	}
	first, a := agent(), pod("a", "vol")
	_, err := first.Mount(ctx, a, "vol")
	if err == nil {
		err = first.RemovePodDir(ctx, "a")
	}
	if !killed {
		t.Fatal("there was no such call")
	}
	settle(d)
	next := agent()
	if goOn {
		path := mount(t, next, a, "vol")
		if kind != "block" {
			if text, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(text) != "vol" {
				t.Errorf("read %q, %v", text, err)
			}
		}
	}
	must(t, next.RemovePodDir(t.Context(), "a"))
	if method == "NodeUnstageVolume" { // the pod's end did not wait for it, and Run goes on with it
		p := newPlugin(t, root, socket, parts(c))
		staged, err := p.Staged()
		must(t, err)
		if len(staged) > 0 {
			runUntilUnstaged(t, d, p)
		}
	}
	wantGone(t, d, root)
	_ = err // an agent that is killed tells nobody
}

// settle waits until the driver has ended its calls.
func settle(d *strictDriver) {
	for {
		d.mu.Lock()
		busy := len(d.inFlight)
		d.mu.Unlock()
		if busy == 0 {
			return
		}
	}
}

// A reboot takes all mounts away; what is noted of them does not count.
func TestReboot(t *testing.T) {
	for name, change := range map[string]func(*volume.Source){"mount": nil, "block": asBlock} {
		t.Run(name, func(t *testing.T) {
			d, socket := startDriver(t, allCaps, "vol")
			root, c := t.TempDir(), &cluster{change: change}
			m := manager(t, root, c, newPlugin(t, root, socket, parts(c)))
			a := pod("a", "vol")
			path := mount(t, m, a, "vol")
			rebooted(t, d, root, path)
			m = manager(t, root, c, newPlugin(t, root, socket, parts(c)))
			if mounted, err := m.Mounted(t.Context(), "a"); err != nil || len(mounted) != 0 {
				t.Errorf("mounted %v, %v", mounted, err)
			}
			d.took()
			mount(t, m, a, "vol")
			d.wantCalls(t, "Stage vol", "Publish vol")
			must(t, m.RemovePodDir(t.Context(), "a"))
			wantGone(t, d, root)
		})
	}
}

// rebooted does what a reboot does to mounts and to what the driver knows.
func rebooted(t *testing.T, d *strictDriver, root, path string) {
	t.Helper()
	must(t, unbind(path))
	d.mu.Lock()
	for _, stage := range d.staged {
		if err := unbind(stage); err != nil {
			t.Error(err)
		}
	}
	d.staged, d.published = map[string]string{}, map[string]map[string]bool{}
	d.mu.Unlock()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	must(t, err)
	err = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != "vol_data.json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		old := strings.ReplaceAll(string(text), strings.TrimSpace(string(boot)), "an-earlier-boot")
		return os.WriteFile(path, []byte(old), 0o600)
	})
	must(t, err)
}
