package images

import (
	"slices"
	"testing"
	"time"

	"nodekit.dev/runtime"
)

var collectNow = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// record makes an image seen and used that long ago; used < 0: never.
func record(id string, seen, used time.Duration) Record {
	r := Record{ImageInfo: runtime.ImageInfo{ID: id, Size: 100}, FirstSeen: collectNow.Add(-seen)}
	if used >= 0 {
		r.LastUsed = collectNow.Add(-used)
	}
	return r
}

func ids(records []Record) []string {
	var out []string
	for _, r := range records {
		out = append(out, r.ID)
	}
	return out
}

func TestCollectable(t *testing.T) {
	pinned := record("pause", time.Hour, -1)
	pinned.Pinned = true
	tagged := record("tagged", time.Hour, -1)
	tagged.RepoTags = []string{"docker.io/library/web:1"}
	digested := record("digested", time.Hour, -1)
	digested.RepoDigests = []string{"web@sha256:1"}

	cases := []struct {
		name   string
		images []Record
		inUse  []string
		want   []string
	}{
		{"pinned never goes", []Record{pinned, record("a", time.Hour, -1)}, nil, []string{"a"}},
		{"in use by id, tag and digest", []Record{record("a", time.Hour, 0), tagged, digested},
			[]string{"a", "docker.io/library/web:1", "web@sha256:1"}, nil},
		{"younger than the minimum age", []Record{record("young", 119*time.Second, -1), record("old", 120*time.Second, -1)}, nil, []string{"old"}},
		{"never used first, then oldest use", []Record{record("b", time.Hour, time.Minute), record("a", time.Hour, 10*time.Minute), record("never", time.Hour, -1)},
			nil, []string{"never", "a", "b"}},
		{"equal use: oldest known, then id", []Record{record("z", time.Hour, time.Minute), record("y", time.Hour, time.Minute), record("x", 2*time.Hour, time.Minute)},
			nil, []string{"x", "y", "z"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inUse := map[string]bool{}
			for _, name := range c.inUse {
				inUse[name] = true
			}
			got := ids(Collectable(c.images, inUse, collectNow, DefaultCollectPolicy()))
			if !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestBytesToFree(t *testing.T) {
	cases := []struct {
		name                string
		capacity, available uint64
		want                uint64
	}{
		{"below the high threshold", 1000, 160, 0},
		{"at the high threshold", 1000, 150, 50},
		{"nearly full", 1000, 10, 190},
		{"unknown capacity", 0, 0, 0},
		{"nonsense from the runtime", 10, 20, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := DefaultCollectPolicy().BytesToFree(c.capacity, c.available); got != c.want {
				t.Fatalf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	images := []Record{record("a", 9*time.Hour, 3*time.Hour), record("b", 9*time.Hour, 2*time.Hour), record("c", 9*time.Hour, time.Hour)}
	cases := []struct {
		name   string
		toFree uint64
		maxAge time.Duration
		want   []string
	}{
		{"nothing to free", 0, 0, nil},
		{"stops when enough is freed", 150, 0, []string{"a", "b"}},
		{"never more than there is", 1e9, 0, []string{"a", "b", "c"}},
		{"too old goes without pressure", 0, 150 * time.Minute, []string{"a"}},
		{"what is too old counts as freed", 100, 150 * time.Minute, []string{"a"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			policy := CollectPolicy{MaxAge: c.maxAge}
			if got := ids(Choose(images, c.toFree, collectNow, policy)); !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
		})
	}
}
