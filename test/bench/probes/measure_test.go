package probes

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMeasure: what is measured is measured, on any machine.
func TestMeasure(t *testing.T) {
	program := filepath.Join(t.TempDir(), "servers")
	if out, err := exec.Command("go", "build", "-o", program, "./servers").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := Measure(t.Context(), Options{Servers: program, Probes: 50, Period: 100 * time.Millisecond, Window: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r.Checks == 0 || r.Failed != 0 || r.CPU <= 0 || r.Objects <= 0 || r.AtRest == 0 || r.LateMax < r.LateMedian {
		t.Errorf("%+v", r)
	}
}
