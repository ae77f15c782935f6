package wire

import (
	"context"
	"testing"

	"nodekit.dev/node/expand"
	"nodekit.dev/volume"
)

// doubling grows everything.
type doubling struct{}

func (doubling) Grows(volume.Recorded) bool            { return true }
func (doubling) SizeOf(volume.Recorded) (int64, error) { return 1, nil }
func (doubling) Expand(_ context.Context, _ volume.Recorded, size int64) (int64, error) {
	return size, nil
}

// TestGrower: who grows volumes may come after who asks for it.
func TestGrower(t *testing.T) {
	contents, changes := &Contents{}, 0
	contents.OnMountsChange(func() { changes++ })
	g := contents.Grower()
	if size, err := g.SizeOf(volume.Recorded{}); g.Grows(volume.Recorded{}) || size != 0 || err != nil {
		t.Error("somebody grows volumes")
	}
	if size, err := g.Expand(t.Context(), volume.Recorded{}, 2); size != 0 || err != nil {
		t.Error(size, err)
	}
	contents.KeepGrower(doubling{})
	if size, err := g.Expand(t.Context(), volume.Recorded{}, 2); !g.Grows(volume.Recorded{}) || size != 2 || err != nil || changes != 1 {
		t.Error(size, err, changes)
	}
	told := 0
	contents.OnGrown(func(g expand.Growth) { told += int(g.Size) })
	contents.Grown(expand.Growth{Size: 3})
	if told != 3 {
		t.Error(told)
	}
}
