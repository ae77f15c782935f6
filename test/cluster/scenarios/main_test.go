package scenarios

import (
	"encoding/base64"
	"flag"
	"os"
	"testing"

	"nodekit.dev/test/cluster/install"
	"nodekit.dev/test/integration/testbed"
)

// soaking runs what takes too long for make cluster.
var soaking = os.Getenv("NODEKIT_SOAK") != ""

// TestMain builds what the tests need before the clock of go test matters, and
// lets more cases run side by side than there are processors: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "6"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// require skips or fails the test where no cluster can run. What takes long
// should have been built by cmd/install before.
func require(t *testing.T) {
	t.Helper()
	testbed.Require(t)
	if _, err := install.ControlPlane(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
}

func ptr[T any](v T) *T { return &v }

func decodeBase64(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
