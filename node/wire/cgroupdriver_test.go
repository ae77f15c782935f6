package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/node/wire"
	"nodekit.dev/resources"
	"nodekit.dev/runtime/runtimetest"
)

// driverAnswers are what a runtime says when it is asked again and again.
type driverAnswers struct {
	driver string
	errs   []error
}

func (d *driverAnswers) CgroupDriver(context.Context) (string, error) {
	if len(d.errs) > 0 {
		err := d.errs[0]
		d.errs = d.errs[1:]
		return "", err
	}
	return d.driver, nil
}

type unimplemented struct{ error }

func (unimplemented) Unimplemented() bool { return true }

func TestCheckCgroupDriver(t *testing.T) {
	down := errors.New("connection refused")
	for name, tc := range map[string]struct {
		configured resources.CgroupDriver
		runtime    driverAnswers
		wrong      bool
	}{
		"the same":            {resources.Systemd, driverAnswers{driver: "systemd"}, false},
		"the default":         {"", driverAnswers{driver: "cgroupfs"}, false},
		"another":             {resources.Cgroupfs, driverAnswers{driver: "systemd"}, true},
		"the other way round": {resources.Systemd, driverAnswers{driver: "cgroupfs"}, true},
		"comes up late":       {"", driverAnswers{driver: "systemd", errs: []error{down, down}}, true},
		"does not tell":       {"", driverAnswers{driver: "systemd", errs: []error{unimplemented{down}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t, "unix:///x.sock")
			cfg.Spec.Cgroups.Driver = tc.configured
			cfg, err := cfg.Complete()
			must(t, err)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := wire.CheckCgroupDriver(cfg, &tc.runtime)(ctx)
				if !tc.wrong {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("ended with %v, want to run until it is stopped", err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), `"systemd"`) || !strings.Contains(err.Error(), `"cgroupfs"`) {
					t.Errorf("error %v, want one with both names", err)
				}
			})
		})
	}
}

// TestAgentOfAnotherCgroupDriver ends, and says why.
func TestAgentOfAnotherCgroupDriver(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{CgroupDriver: "systemd"})
	agent, err := wire.New(config(t, w.Serve(t, t.TempDir()).Endpoint()), wire.WithSource(sourceOf(t)))
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := agent.Run(ctx); err == nil || !strings.Contains(err.Error(), `the runtime uses "systemd"`) {
		t.Errorf("Run: %v", err)
	}
}
