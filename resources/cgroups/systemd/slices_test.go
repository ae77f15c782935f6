package systemd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"nodekit.dev/resources"
	"nodekit.dev/resources/cgroups"
)

// fakeBus is a systemd that has units.
type fakeBus struct {
	units        map[string]map[string]any
	result       string // of jobs; "": they never end
	disconnected bool
	closed       int
}

func (f *fakeBus) Connected() bool { return !f.disconnected }
func (f *fakeBus) Close()          { f.closed++ }

func (f *fakeBus) StartTransientUnitContext(_ context.Context, name, _ string, props []sd.Property, done chan<- string) (int, error) {
	if f.units[name] != nil {
		return 0, dbus.Error{Name: "org.freedesktop.systemd1.UnitExists"}
	}
	f.units[name] = map[string]any{}
	f.set(name, props)
	return f.end(done)
}

func (f *fakeBus) SetUnitPropertiesContext(_ context.Context, name string, _ bool, props ...sd.Property) error {
	f.set(name, props)
	return nil
}

func (f *fakeBus) StopUnitContext(_ context.Context, name, _ string, done chan<- string) (int, error) {
	if f.units[name] == nil {
		return 0, dbus.Error{Name: "org.freedesktop.systemd1.NoSuchUnit"}
	}
	delete(f.units, name)
	return f.end(done)
}

func (f *fakeBus) end(done chan<- string) (int, error) {
	if f.result != "" {
		done <- f.result
	}
	return 1, nil
}

func (f *fakeBus) set(name string, props []sd.Property) {
	for _, p := range props {
		f.units[name][p.Name] = p.Value.Value()
	}
}

func newSlices(f *fakeBus) (*Slices, *bytes.Buffer) {
	var logged bytes.Buffer
	s := New(Default(), slog.New(slog.NewTextHandler(&logged, nil)))
	s.dial = func(context.Context) (bus, error) {
		f.disconnected = false
		return f, nil
	}
	return s, &logged
}

const pod = "kubepods-burstable-pod1.slice"

var limited = cgroups.Wanted{Limits: resources.Limits{CPUShares: 1024, CPUQuota: 50_000, CPUPeriod: 100_000, Memory: 1 << 20}, Pids: 7}

func TestSliceIsMadeChangedAndRemoved(t *testing.T) {
	f := &fakeBus{units: map[string]map[string]any{}, result: "done"}
	s, logged := newSlices(f)
	if err := s.Ensure(t.Context(), pod, limited, true); err != nil {
		t.Fatal(err)
	}
	if got := f.units[pod]; got["MemoryMax"] != uint64(1<<20) || got["DefaultDependencies"] != false {
		t.Errorf("made as %v", got)
	}
	// An agent that starts again finds it there; its limits may have changed.
	if err := s.Ensure(t.Context(), pod, cgroups.Wanted{Limits: resources.Limits{CPUShares: 2}}, true); err != nil {
		t.Fatal(err)
	}
	if got := f.units[pod]; got["MemoryMax"] != infinity || got["TasksMax"] != infinity || got["CPUWeight"] != uint64(1) {
		t.Errorf("changed to %v", got)
	}
	for range 2 {
		if err := s.Remove(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.units) > 0 || logged.Len() > 0 {
		t.Errorf("left %v, logged %s", f.units, logged)
	}
}

func TestJobThatFails(t *testing.T) {
	s, _ := newSlices(&fakeBus{units: map[string]map[string]any{}, result: "failed"})
	err := s.Ensure(t.Context(), pod, limited, true)
	if want := "start " + pod + `: systemd's job ended as "failed"`; err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
}

func TestJobThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newSlices(&fakeBus{units: map[string]map[string]any{}})
		if err := s.Ensure(t.Context(), pod, limited, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// A systemd that was restarted, or a bus, is asked on a new connection.
func TestNewConnectionAfterOneThatBroke(t *testing.T) {
	f := &fakeBus{units: map[string]map[string]any{}, result: "done"}
	s, logged := newSlices(f)
	for range 2 {
		if err := s.Ensure(t.Context(), pod, limited, true); err != nil {
			t.Fatal(err)
		}
		f.disconnected = true
	}
	if f.closed != 1 || !strings.Contains(logged.String(), "connection to systemd is lost") {
		t.Errorf("closed %d times, logged %s", f.closed, logged)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) || f.closed != 2 {
		t.Errorf("%v, closed %d times", err, f.closed)
	}
}

func TestNoSystemd(t *testing.T) {
	s, _ := newSlices(nil)
	s.dial = func(context.Context) (bus, error) { return nil, errors.New("no such file") }
	for _, err := range []error{s.Ensure(t.Context(), pod, limited, true), s.Remove(t.Context(), pod)} {
		if err == nil || !strings.Contains(err.Error(), "no connection to systemd (is it this machine's init, and the bus up?): no such file") {
			t.Errorf("error %v", err)
		}
	}
}

func TestProperties(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted  cgroups.Wanted
		unified bool
		want    map[string]any
	}{
		"v2": {limited, true, map[string]any{
			"CPUWeight": uint64(39), "CPUQuotaPerSecUSec": uint64(500_000), "CPUQuotaPeriodUSec": uint64(100_000), "MemoryMax": uint64(1 << 20), "TasksMax": uint64(7),
		}},
		"v1": {limited, false, map[string]any{
			"CPUShares": uint64(1024), "CPUQuotaPerSecUSec": uint64(500_000), "CPUQuotaPeriodUSec": uint64(100_000), "MemoryLimit": uint64(1 << 20), "TasksMax": uint64(7),
		}},
		"no limits": {cgroups.Wanted{}, false, map[string]any{
			"CPUShares": uint64(2), "CPUQuotaPerSecUSec": infinity, "MemoryLimit": infinity, "TasksMax": infinity,
		}},
		"a part of a percent is rounded up": {cgroups.Wanted{Limits: resources.Limits{CPUQuota: 1001, CPUPeriod: 100_000}}, true, map[string]any{
			"CPUWeight": uint64(1), "CPUQuotaPerSecUSec": uint64(20_000), "CPUQuotaPeriodUSec": uint64(100_000), "MemoryMax": infinity, "TasksMax": infinity,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := limitProperties(tc.wanted, tc.unified)
			for _, p := range got {
				if p.Value.Value() != tc.want[p.Name] {
					t.Errorf("%s is %v, want %v", p.Name, p.Value.Value(), tc.want[p.Name])
				}
			}
			if len(got) != len(tc.want) {
				t.Errorf("%d properties, want %d", len(got), len(tc.want))
			}
		})
	}
	v1 := unitProperties(false)
	if slices.ContainsFunc(v1, func(p sd.Property) bool { return p.Name == "IOAccounting" }) {
		t.Error("v1 has no IOAccounting")
	}
}
