package vm

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nodekit.dev/test/vm/machine"
)

const (
	// bootTime is how long the machine may say nothing: 20 s is usual, but a busy
	// machine that emulates another is slow.
	bootTime = 8 * time.Minute
	// runTime is for all, from the boot to the end.
	runTime = 25 * time.Minute
)

// TestGuest boots the machine and has the result of each test in it.
func TestGuest(t *testing.T) {
	machine.Require(t, os.Stderr)
	dir := t.TempDir()
	files := filepath.Join(dir, "files.tar")
	if err := writePayload(t.Context(), files, dir, arguments()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	boot := time.AfterFunc(bootTime, func() { cancel(errors.New("the machine did not get to its tests in time")) })
	end := time.AfterFunc(runTime, func() { cancel(errors.New("the machine did not end in time")) })
	defer end.Stop()
	began := time.Now()
	m, err := machine.Start(ctx, machine.Config{Files: files, Unit: "nodekit-tests.service", Console: filepath.Join(dir, "console.log")})
	if err != nil {
		t.Fatal(err)
	}
	first := func() {
		if boot.Stop() {
			t.Logf("booted in %v", time.Since(began).Round(100*time.Millisecond))
		}
	}
	r, wait, err := convert(&noticing{in: m.Output, first: first})
	if err != nil {
		t.Fatal(err)
	}
	r.report(t, "")
	if err := errors.Join(wait(), m.Wait(), context.Cause(ctx)); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("the end of the console:\n%s", m.ConsoleTail(40))
	}
}

// arguments hand the pattern of -run below TestGuest on to the tests there.
func arguments() string {
	_, below, found := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	if !found {
		return ""
	}
	return "-test.run=" + below
}

// noticing calls first when there is something to read.
type noticing struct {
	in    io.Reader
	first func()
}

func (n *noticing) Read(p []byte) (int, error) {
	count, err := n.in.Read(p)
	if count > 0 && n.first != nil {
		n.first()
		n.first = nil
	}
	return count, err
}
