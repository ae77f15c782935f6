package userns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func newRanges(t *testing.T, edit ...func(*Config)) (*Ranges, string) {
	t.Helper()
	cfg := Config{PodsDir: t.TempDir()}
	for _, e := range edit {
		e(&cfg)
	}
	r, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, cfg.PodsDir
}

func (r *Ranges) must(t *testing.T, uid string) IDs {
	t.Helper()
	ids, err := r.Range(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestRangesComeAndGo(t *testing.T) {
	r, dir := newRanges(t)
	a, b := r.must(t, "a"), r.must(t, "b")
	if a != (IDs{65536, 65536}) || b != (IDs{131072, 65536}) || r.must(t, "a") != a {
		t.Errorf("a %+v, b %+v", a, b)
	}
	data, err := os.ReadFile(filepath.Join(dir, "a", "userns"))
	const want = `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}`
	if err != nil || string(data) != want {
		t.Errorf("note %s, %v", data, err)
	}
	for range 2 {
		if err := r.Release("a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "userns")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the note is still there: %v", err)
	}
	if c := r.must(t, "c"); c != a {
		t.Errorf("c has %+v, want what a gave back", c)
	}
	if err := r.Release("nobody"); err != nil {
		t.Error(err)
	}
}

// TestRestart: the next agent, or the stock kubelet before this one, has noted
// who has what.
func TestRestart(t *testing.T) {
	r, dir := newRanges(t)
	a, b := r.must(t, "a"), r.must(t, "b")
	if err := r.Release("a"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "plain"), 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := New(Config{PodsDir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := next.must(t, "b"); got != b {
		t.Errorf("b has %+v after the restart, had %+v", got, b)
	}
	if got := next.must(t, "c"); got != a {
		t.Errorf("c has %+v", got)
	}
	if got := next.must(t, "d"); got == a || got == b {
		t.Errorf("d has %+v, which is another's", got)
	}
}

// TestDamagedNote: whose IDs they are is not known any more, so nobody else gets
// what may be theirs.
func TestDamagedNote(t *testing.T) {
	for _, content := range []string{
		"", "{", `{"uidMappings":[],"gidMappings":[]}`,
		`{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}`,
		`{"uidMappings":[{"hostId":65536,"containerId":5,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":5,"length":65536}]}`,
	} {
		r, dir := newRanges(t)
		if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a", "userns"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		const far = 1<<32 - 65536
		if got := r.must(t, "b"); got.First != far {
			t.Errorf("%q: b has %+v", content, got)
		}
		if got := r.must(t, "a"); got.First != far-65536 {
			t.Errorf("%q: a has %+v", content, got)
		}
		if err := r.Release("a"); err != nil {
			t.Fatal(err)
		}
		if got := r.must(t, "c"); got.First != 65536 {
			t.Errorf("%q: c has %+v, though all is known again", content, got)
		}
	}
}

func TestRangesOfOtherSizesAreNotTouched(t *testing.T) {
	held := []IDs{{65536, 100}, {131072 + 65535, 1}, {262144, 131072}}
	for i, want := range []uint32{196608, 393216, 458752} {
		got, ok := pick(pickInput{owned: IDs{65536, 65536 * 10}, size: 65536, held: held})
		if !ok || got.First != want {
			t.Fatalf("pick %d: %+v", i, got)
		}
		held = append(held, got)
	}
}

func TestNoMoreRanges(t *testing.T) {
	for _, lost := range []bool{false, true} {
		held := []IDs{{65536, 65536}, {131072, 65536}}
		if got, ok := pick(pickInput{owned: IDs{65536, 131072}, size: 65536, held: held, lost: lost}); ok {
			t.Errorf("lost %v: %+v", lost, got)
		}
	}
	r, _ := newRanges(t, func(c *Config) {
		c.Owned = func(context.Context) (IDs, error) { return IDs{65536, 65536}, nil }
	})
	r.must(t, "a")
	if _, err := r.Range(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "could not find an empty slot") {
		t.Errorf("error %v", err)
	}
}

func TestOwnedThatIsNotFit(t *testing.T) {
	for want, tc := range map[string]struct {
		owned   IDs
		size    int64
		maxPods int
	}{
		"ID 65537 is not a multiple of 65536":     {IDs{65537, 65536}, 0, 0},
		"must be greater or equal to 65536":       {IDs{0, 65536}, 0, 0},
		"length 65537 is not a multiple of 65536": {IDs{65536, 65537}, 0, 0},
		"not enough to support 3 pods":            {IDs{65536, 131072}, 0, 3},
		"ID 65536 is not a multiple of 131072":    {IDs{65536, 131072}, 131072, 0},
		"there are not so many":                   {IDs{1<<32 - 65536, 131072}, 0, 0},
	} {
		r, _ := newRanges(t, func(c *Config) {
			c.IDsPerPod, c.MaxPods = tc.size, tc.maxPods
			c.Owned = func(context.Context) (IDs, error) { return tc.owned, nil }
		})
		if _, err := r.Range(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, cfg := range map[string]Config{
		"PodsDir":             {PodsDir: "pods"},
		"IDsPerPod 100":       {PodsDir: "/p", IDsPerPod: 100},
		"IDsPerPod -65536":    {PodsDir: "/p", IDsPerPod: -65536},
		"IDsPerPod 429496729": {PodsDir: "/p", IDsPerPod: 1 << 32},
	} {
		if _, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestOwnedIsAskedUntilItAnswers, and once after that.
func TestOwnedIsAskedUntilItAnswers(t *testing.T) {
	asked := 0
	r, _ := newRanges(t, func(c *Config) {
		c.Owned = func(context.Context) (IDs, error) {
			if asked++; asked == 1 {
				return IDs{}, errors.New("directory server is away")
			}
			return IDs{131072, 131072}, nil
		}
	})
	if _, err := r.Range(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("error %v", err)
	}
	if got := r.must(t, "a"); got.First != 131072 {
		t.Errorf("%+v", got)
	}
	r.must(t, "b")
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

func TestManyAtOnce(t *testing.T) {
	r, _ := newRanges(t)
	var mu sync.Mutex
	taken := map[uint32]string{}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			uid := fmt.Sprint("pod", i%20) // each twice
			ids, err := r.Range(t.Context(), uid)
			mu.Lock()
			defer mu.Unlock()
			if other, ok := taken[ids.First]; err != nil || ok && other != uid {
				t.Errorf("%s and %s have %d, %v", uid, other, ids.First, err)
			}
			taken[ids.First] = uid
		})
	}
	all.Wait()
	if len(taken) != 20 {
		t.Errorf("%d ranges for 20 pods", len(taken))
	}
}

// tool is a Runner.
type tool struct {
	users, groups string
	exit          int
	err           error
}

func (f tool) Run(_ context.Context, name string, args ...string) (int, []byte, error) {
	if name != "getsubids" || args[len(args)-1] != "kubelet" {
		return 0, nil, fmt.Errorf("unexpected %s %q", name, args)
	}
	if args[0] == "-g" {
		return f.exit, []byte(f.groups), f.err
	}
	return f.exit, []byte(f.users), f.err
}

func TestSubIDs(t *testing.T) {
	all := IDs{65536, 1<<32 - 65536}
	const line = "0: kubelet 131072 2147483648\n"
	for name, tc := range map[string]struct {
		tool tool
		want string // the IDs, or a part of the error behind "!"
	}{
		"given":          {tool{users: line, groups: line}, "{131072 2147483648}"},
		"no tool":        {tool{err: fmt.Errorf("getsubids: %w", exec.ErrNotFound)}, fmt.Sprint(all)},
		"not the same":   {tool{users: line, groups: "0: kubelet 65536 65536\n"}, "!mismatched subuids and subgids"},
		"two lines":      {tool{users: line + line, groups: line + line}, "!want one line"},
		"nothing":        {tool{}, "!want one line"},
		"no number":      {tool{users: "0: kubelet x 1", groups: "0: kubelet x 1"}, "!error parsing line"},
		"too many":       {tool{users: "0: kubelet 1 4294967296", groups: "0: kubelet 1 4294967296"}, "!error parsing line"},
		"it says no":     {tool{exit: 1, users: "Error fetching ranges"}, "!exit code 1: Error fetching ranges"},
		"it can not run": {tool{err: errors.New("broken")}, "!additional uids"},
	} {
		got, err := subIDs(t.Context(), tc.tool, all)
		part, fails := strings.CutPrefix(tc.want, "!")
		if fails && (err == nil || !strings.Contains(err.Error(), part)) || !fails && (err != nil || fmt.Sprint(got) != tc.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
