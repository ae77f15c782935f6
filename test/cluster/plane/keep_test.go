package plane

import (
	"path/filepath"
	"testing"
	"time"

	"nodekit.dev/test/integration/daemon"
)

func TestKept(t *testing.T) {
	started := make(chan *daemon.Daemon, 10)
	k, err := keep(func() (*daemon.Daemon, error) {
		d, err := daemon.Start(daemon.Config{Program: "/bin/sleep", Args: []string{"60"}, Log: filepath.Join(t.TempDir(), "log")})
		started <- d
		return d, err
	})
	if err != nil {
		t.Fatal(err)
	}
	first := <-started
	if err := first.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	var second *daemon.Daemon
	select {
	case second = <-started:
	case <-time.After(10 * time.Second):
		t.Fatal("it was not started again")
	}
	if err := k.stop(t.Context()); err != nil || second.Alive() || k.alive() {
		t.Errorf("after stop: %v, alive %v", err, k.alive())
	}
	if len(started) != 0 {
		t.Error("it was started again after stop")
	}
}
