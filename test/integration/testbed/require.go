package testbed

import (
	"context"
	"os"
	"testing"
	"time"
)

// RequireAllEnv turns the skip of a test that can not run here into a failure.
const RequireAllEnv = "NODEKIT_REQUIRE_ALL"

// Require skips the test, saying why, when this machine can not run a bed, and
// fails it instead when RequireAllEnv is set.
func Require(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	err := Install(ctx)
	switch {
	case err == nil:
	case os.Getenv(RequireAllEnv) != "":
		t.Fatalf("%s is set, and this test can not run: %v", RequireAllEnv, err)
	default:
		t.Skipf("needs a real containerd: %v", err)
	}
}
