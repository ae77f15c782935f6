// Package beneathtest gives tests a private mount namespace, so that what they
// mount is seen by nobody else and gone when they end.
//
//	func TestMain(m *testing.M) { os.Exit(beneathtest.Main(m)) }
//
//	func TestMounts(t *testing.T) {
//		beneathtest.NeedMounts(t)
//		...
//	}
package beneathtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"nodekit.dev/internal/needtest"
)

const insideEnv = "NODEKIT_TEST_MOUNT_NAMESPACE"

// Main runs the tests of a package in a private mount namespace, by starting
// the test binary again in one. Where that is not allowed it runs them as
// they are, and [NeedMounts] skips those that mount. It returns the exit code.
func Main(m *testing.M) int {
	if os.Geteuid() != 0 || os.Getenv(insideEnv) != "" {
		return m.Run()
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "no private mount namespace:", err)
		return m.Run()
	}
}

// NeedMounts skips the test where it can not mount, and fails it instead when
// NODEKIT_REQUIRE_ALL is 1.
func NeedMounts(t testing.TB) {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		return
	}
	needtest.SkipOrFail(t, "needs root and a private mount namespace (Main of this package)")
}
