package daemon_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nodekit.dev/test/integration/daemon"
)

func Example() {
	d, err := daemon.Start(daemon.Config{Program: "/bin/sleep", Args: []string{"60"}, Log: "/dev/null"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Alive(), d.State())
	err = d.Kill(context.Background())
	fmt.Println(d.Alive(), d.State(), err)
	// Output:
	// true running
	// false signal: killed <nil>
}

func TestNil(t *testing.T) {
	var d *daemon.Daemon
	if d.Alive() || d.Kill(t.Context()) != nil || d.State() != "never started" {
		t.Error("a daemon that was never started is not simply dead")
	}
}

func TestLogAndExit(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	d, err := daemon.Start(daemon.Config{Program: "/bin/sh", Args: []string{"-c", "seq 1 5; exit 3"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	<-d.Done()
	if d.ExitCode() != 3 || !strings.Contains(d.State(), "3") {
		t.Errorf("it ended with %d, %s", d.ExitCode(), d.State())
	}
	if got := daemon.Tail(log, 2); got != "4\n5" {
		t.Errorf("the log ends with %q", got)
	}
}

// A daemon that does not end when it is asked to is an error that names it.
func TestDeaf(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	d, err := daemon.Start(daemon.Config{Program: "/bin/sh", Args: []string{"-c", "trap '' TERM; echo up; while :; do sleep 60; done"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for daemon.Tail(log, 1) != "up" {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := d.End(ctx, syscall.SIGTERM); err == nil || !strings.Contains(err.Error(), "did not end on terminated") {
		t.Errorf("End: %v", err)
	}
	_ = syscall.Kill(-d.PID(), syscall.SIGKILL) // with its sleep
	if err := d.Kill(t.Context()); err != nil {
		t.Error(err)
	}
}
