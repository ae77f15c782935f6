// Package needtest is for tests that need what a machine may not have.
package needtest

import (
	"os"
	"testing"
)

// SkipOrFail skips the test and says why, and fails it instead where
// NODEKIT_REQUIRE_ALL is set: on such a machine everything has to run.
func SkipOrFail(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("NODEKIT_REQUIRE_ALL") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
