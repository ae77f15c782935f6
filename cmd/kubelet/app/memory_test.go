package app

import "testing"

func TestWorthTrimming(t *testing.T) {
	const mb = 1 << 20
	for _, tt := range []struct {
		name                 string
		now, before, trimmed uint64
		want                 bool
	}{
		{"the first quiet moment", 10 * mb, 10 * mb, 0, true},
		{"still busy", 20 * mb, 10 * mb, 0, false},
		{"quiet, and trimmed already", 10*mb + 1000, 10 * mb, 10 * mb, false},
		{"quiet after a burst", 30*mb + 1000, 30 * mb, 10 * mb, true},
	} {
		if got := worthTrimming(tt.now, tt.before, tt.trimmed); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
