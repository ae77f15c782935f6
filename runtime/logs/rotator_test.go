package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// start runs a Rotator until the returned function is called.
func start(t *testing.T, r *Rotator) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
}

func newRotator(t *testing.T, cfg Config, f *fakeRuntime) *Rotator {
	t.Helper()
	r, err := NewRotator(cfg, f, f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// followFirst reads the log of a container from its first line on, until the
// returned function says that the container ended; that gives what was read.
// It returns once the follower has its first line: one that begins after the
// first rotation begins, as it should, with the file that is there then.
func followFirst(t *testing.T, f *fakeRuntime, id string) (followed func() []byte) {
	t.Helper()
	out := &firstWrite{first: make(chan struct{})}
	ended, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- Copy(t.Context(), Request{Path: f.path(id), Options: Options{Follow: true}, Stdout: out, Ended: ended})
	}()
	f.write(id, 1)
	select {
	case <-out.first:
	case err := <-done:
		t.Fatalf("the follower ended before its first line: %v", err)
	}
	return func() []byte {
		close(ended)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
}

// firstWrite tells when it was first written to.
type firstWrite struct {
	bytes.Buffer
	first chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.Len() == 0 && len(p) > 0 {
		defer close(w.first)
	}
	return w.Buffer.Write(p)
}

// The growth events alone must find a log that bursts between two intervals,
// and no line may be lost, torn or doubled on the way, also not for a reader
// that follows.
func TestBurstsRotateByEventsWithoutLosingALine(t *testing.T) {
	f := newRuntime(t, "a", "b", "c")
	r := newRotator(t, Config{MaxSize: 20_000, MaxFiles: 1000, Interval: time.Hour}, f)
	stop := start(t, r)
	defer stop()

	followed := followFirst(t, f, "a")
	for _, id := range []string{"a", "b", "c"} {
		for rounds := 1; rounds <= 3; rounds++ {
			f.write(id, 600) // about 25 kB
			eventually(t, "rotation of "+id, func() bool {
				return f.count(id) >= rounds
			})
		}
		f.write(id, 10)
	}
	for _, id := range []string{"a", "b", "c"} {
		eventually(t, "compression of "+id, func() bool {
			names := f.names(id)
			packed := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasSuffix(n, gzSuffix) })
			return len(names) == 3 && len(packed) == 2 && !strings.HasSuffix(names[2], gzSuffix)
		})
	}
	got := followed()
	stop()
	for _, id := range []string{"a", "b", "c"} {
		wantLines(t, f.everything(id), f.written[id])
	}
	var want strings.Builder
	for i := range f.written["a"] {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if string(got) != want.String() {
		t.Fatalf("the follower read %d bytes, want %d", len(got), want.Len())
	}
}

// A container that writes all the time.
func TestSteadyWriterAndFollowerLoseNothing(t *testing.T) {
	f := newRuntime(t, "a")
	stop := start(t, newRotator(t, Config{MaxSize: 100_000, MaxFiles: 1000, Interval: time.Hour}, f))
	defer stop()
	followed := followFirst(t, f, "a")
	eventually(t, "four rotations", func() bool {
		f.write("a", 50)
		return f.count("a") >= 4
	})
	got := followed()
	stop()
	// A compression that the stop interrupted left nothing but its original.
	if _, err := compressOlder(t.Context(), f.path("a")); err != nil {
		t.Fatal(err)
	}
	wantLines(t, f.everything("a"), f.written["a"])
	if lines := bytes.Count(got, []byte("\n")); lines != f.written["a"] {
		t.Fatalf("the follower read %d lines of %d", lines, f.written["a"])
	}
}

// inBubble runs a test on fake time: without file events, so that only timers
// and the interval lead to a look.
func inBubble(t *testing.T, cfg Config, test func(*testing.T, *fakeRuntime, *Rotator)) {
	f := newRuntime(t, "a", "b")
	synctest.Test(t, func(t *testing.T) {
		r := newRotator(t, cfg, f)
		r.newGrowth = func() (growth, error) { return nil, errors.New("no watches left on this host") }
		stop := start(t, r)
		defer stop()
		synctest.Wait()
		test(t, f, r)
	})
}

// pass lets fake time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestIntervalIsTheSafetyNet(t *testing.T) {
	inBubble(t, Config{MaxSize: 1000, Interval: 10 * time.Second}, func(t *testing.T, f *fakeRuntime, r *Rotator) {
		f.write("a", 100)
		pass(9 * time.Second)
		if f.count("a") != 0 {
			t.Fatal("rotated without an event before the interval")
		}
		pass(2 * time.Second)
		if f.count("a") != 1 || f.count("b") != 0 {
			t.Fatalf("reopened a %d times, b %d", f.count("a"), f.count("b"))
		}
		f.write("b", 100)
		r.Refresh()
		synctest.Wait()
		if f.count("b") != 1 {
			t.Fatal("Refresh did not look at once")
		}
	})
}

func TestExactSizeRotatesAndOneLessDoesNot(t *testing.T) {
	inBubble(t, Config{MaxSize: 100, Interval: time.Second}, func(t *testing.T, f *fakeRuntime, _ *Rotator) {
		if err := os.Truncate(f.path("a"), 99); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(f.path("b"), 100); err != nil {
			t.Fatal(err)
		}
		pass(1100 * time.Millisecond)
		if f.count("a") != 0 || f.count("b") != 1 {
			t.Fatalf("reopened a %d times, b %d", f.count("a"), f.count("b"))
		}
	})
}

func TestQuickRotationsKeepTheirOrderAndCount(t *testing.T) {
	inBubble(t, Config{MaxSize: 1000, MaxFiles: 4, Interval: 200 * time.Millisecond}, func(t *testing.T, f *fakeRuntime, _ *Rotator) {
		for range 8 { // several within one second
			f.write("a", 100)
			pass(250 * time.Millisecond)
		}
		names := f.names("a")
		if f.count("a") != 8 || len(names) != 3 || !slices.IsSorted(names) {
			t.Fatalf("%d rotations left %v", f.count("a"), names)
		}
		for i, name := range names {
			if last := i == len(names)-1; strings.HasSuffix(name, gzSuffix) == last {
				t.Fatalf("want all but the newest compressed: %v", names)
			}
		}
		// What is left are the newest lines, without a gap.
		all := strings.Split(strings.TrimSpace(f.everything("a")), "\n")
		if len(all) != 300 || !strings.HasSuffix(all[0], "line 500") || !strings.HasSuffix(all[299], "line 799") {
			t.Fatalf("%d lines left, from %q to %q", len(all), all[0], all[len(all)-1])
		}
	})
}

func TestStalledCompressionHoldsUpNoRotation(t *testing.T) {
	f := newRuntime(t, "a", "b")
	synctest.Test(t, func(t *testing.T) {
		r := newRotator(t, Config{MaxSize: 1000, MaxFiles: 3, Interval: time.Second}, f)
		r.newGrowth = func() (growth, error) { return noGrowth{}, nil }
		r.compress = func(ctx context.Context, _ string) ([]string, error) {
			<-ctx.Done() // the disk hangs
			return nil, ctx.Err()
		}
		stop := start(t, r)
		defer stop()
		synctest.Wait()
		for range 5 {
			f.write("a", 100)
			f.write("b", 100)
			pass(1100 * time.Millisecond)
		}
		for _, id := range []string{"a", "b"} {
			if f.count(id) != 5 || len(f.names(id)) != 2 {
				t.Fatalf("%s: %d rotations, left %v", id, f.count(id), f.names(id))
			}
		}
	})
}

func TestHungReopenHoldsUpOnlyItsContainerAndIsUndone(t *testing.T) {
	f := newRuntime(t, "a", "b")
	synctest.Test(t, func(t *testing.T) {
		var rotations []Rotation
		r := newRotator(t, Config{MaxSize: 1000, Interval: time.Second, ReopenTimeout: 30 * time.Second,
			Observer: Observer{Rotated: func(r Rotation) { rotations = append(rotations, r) }}}, f)
		r.newGrowth = func() (growth, error) { return noGrowth{}, nil }
		stop := start(t, r)
		defer stop()
		synctest.Wait()
		f.mu.Lock()
		f.hang = make(chan struct{})
		f.mu.Unlock()
		f.write("a", 100)
		pass(1100 * time.Millisecond)
		f.mu.Lock()
		f.hang = nil
		f.mu.Unlock()
		f.write("b", 100)
		pass(1100 * time.Millisecond)
		if f.count("a") != 0 || f.count("b") != 1 {
			t.Fatalf("reopened a %d times, b %d", f.count("a"), f.count("b"))
		}
		f.write("a", 1) // goes to the renamed file
		pass(30 * time.Second)
		last := rotations[len(rotations)-1]
		if len(rotations) < 2 || !errors.Is(rotations[1].Err, context.DeadlineExceeded) || last.Err != nil {
			t.Fatalf("rotations %+v", rotations)
		}
		wantLines(t, f.everything("a"), 101) // moved back, then rotated again
	})
}

func TestFailedReopenIsUndoneAndTriedAgainLater(t *testing.T) {
	inBubble(t, Config{MaxSize: 1000, Interval: 10 * time.Second}, func(t *testing.T, f *fakeRuntime, r *Rotator) {
		f.fails(errors.New("container is not running"))
		f.write("a", 100)
		r.Refresh()
		synctest.Wait()
		if names := f.names("a"); f.count("a") != 1 || len(names) != 0 {
			t.Fatalf("%d tries left %v", f.count("a"), names)
		}
		f.write("a", 1)
		wantLines(t, f.everything("a"), 101)
		r.Refresh() // no storm of tries
		synctest.Wait()
		if f.count("a") != 1 {
			t.Fatal("tried again at once")
		}
		f.fails(nil)
		pass(11 * time.Second)
		if f.count("a") != 2 || len(f.names("a")) != 1 {
			t.Fatalf("%d tries, rotated %v", f.count("a"), f.names("a"))
		}
	})
}

// A reopen that failed after it took effect (a timeout): the new log must not
// be overwritten by the old one.
func TestFailedReopenThatTookEffectLosesNothing(t *testing.T) {
	f := newRuntime(t, "a")
	f.fail, f.tookIt = errors.New("deadline exceeded"), true
	f.write("a", 10)
	if _, err := rotateOne(t.Context(), f, Log{"a", f.path("a")}, time.Now()); err == nil {
		t.Fatal("no error")
	}
	f.write("a", 5)
	wantLines(t, f.everything("a"), 15)
	if len(f.names("a")) != 1 {
		t.Fatalf("rotated: %v", f.names("a"))
	}
}

// The agent died between renaming and reopening.
func TestInterruptedRotationIsFinished(t *testing.T) {
	f := newRuntime(t, "a", "b")
	f.write("a", 10)
	if err := os.Rename(f.path("a"), f.path("a")+".20260501-101500"); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRotator(t, Config{MaxSize: 1 << 20, Interval: time.Second}, f)
		r.newGrowth = func() (growth, error) { return noGrowth{}, nil }
		stop := start(t, r)
		defer stop()
		synctest.Wait()
		f.write("a", 10)
		if f.count("a") != 1 || f.count("b") != 0 {
			t.Fatalf("reopened a %d times, b %d", f.count("a"), f.count("b"))
		}
		wantLines(t, f.everything("a"), 20)
	})
}

func TestInterruptedCompressionIsCleanedUp(t *testing.T) {
	f := newRuntime(t, "a")
	path := f.path("a")
	files := map[string]string{
		".20260501-100000":        "was compressed, only not removed",
		".20260501-110000":        "first",
		".20260501-110000.tmp":    "half a gzip",
		".20260501-120000":        "second, the newest",
		".20260501-090000.gz.tmp": "not a name of ours",
		".old":                    "somebody else's",
	}
	for suffix, content := range files {
		if err := os.WriteFile(path+suffix, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := compressFile(t.Context(), path+".20260501-100000"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".20260501-100000", []byte("x"), 0o640); err != nil {
		t.Fatal(err)
	}
	done, err := compressOlder(t.Context(), path)
	if err != nil || !slices.Equal(done, []string{path + ".20260501-110000.gz"}) {
		t.Fatalf("compressed %v, %v", done, err)
	}
	want := []string{".20260501-100000.gz", ".20260501-110000.gz", ".20260501-120000"}
	if got := f.names("a"); !slices.Equal(got, want) {
		t.Fatalf("left %v, want %v", got, want)
	}
	for suffix, content := range map[string]string{want[0]: files[".20260501-100000"], want[1]: "first"} {
		packed, _ := os.ReadFile(path + suffix)
		if got := string(unpack(t, packed)); got != content {
			t.Errorf("%s holds %q, want %q", suffix, got, content)
		}
	}
	for _, kept := range []string{".old", ".20260501-090000.gz.tmp"} {
		if _, err := os.Stat(path + kept); err != nil {
			t.Errorf("touched a file that is not ours: %v", err)
		}
	}
	// Again: nothing to do, nothing changes.
	if done, err := compressOlder(t.Context(), path); err != nil || len(done) != 0 {
		t.Fatalf("second call: %v, %v", done, err)
	}
}

func TestCancelledCompressionKeepsTheOriginal(t *testing.T) {
	f := newRuntime(t, "a")
	plain := f.path("a") + ".20260501-100000"
	if err := os.WriteFile(plain, []byte("content"), 0o640); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := compressFile(ctx, plain); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got := f.names("a"); !slices.Equal(got, []string{".20260501-100000"}) {
		t.Fatalf("left %v", got)
	}
}

func TestRotatedName(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 15, 0, 999, time.Local)
	at := func(s string) rotated {
		stamp, err := time.Parse(stampLayout, s)
		if err != nil {
			t.Fatal(err)
		}
		return rotated{stamp: stamp}
	}
	cases := []struct {
		name     string
		existing []rotated
		want     string
	}{
		{"first", nil, "l.20260501-101500"},
		{"older ones", []rotated{at("20260501-101459")}, "l.20260501-101500"},
		{"same second", []rotated{at("20260501-101500")}, "l.20260501-101501"},
		{"clock went back", []rotated{at("20260501-101459"), at("20260501-235959")}, "l.20260502-000000"},
	}
	for _, c := range cases {
		if got := rotatedName("l", c.existing, now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestNextLook(t *testing.T) {
	cases := []struct {
		size, grown int64
		over        time.Duration
		want        time.Duration
	}{
		{0, 0, time.Second, latest},
		{900, 100, time.Second, 500 * time.Millisecond},
		{500, 500, 100 * time.Millisecond, 50 * time.Millisecond},
		{999, 999, time.Second, soonest},
		{10, 1, time.Second, latest},
		{2000, 100, time.Second, soonest},
		{900, 100, 0, latest},
	}
	for _, c := range cases {
		if got := nextLook(c.size, c.grown, 1000, c.over); got != c.want {
			t.Errorf("size %d grew %d in %v: %v, want %v", c.size, c.grown, c.over, got, c.want)
		}
	}
}

// A log that grows steadily is caught near the limit by its pace.
func TestPaceCatchesSteadyGrowthNearTheLimit(t *testing.T) {
	const limit, perSecond = 10_000_000, 300_000
	var size int64
	wait := firstLook
	for looks := 0; ; looks++ {
		before := size
		size += int64(float64(perSecond) * wait.Seconds())
		if size >= limit {
			if size > limit+perSecond/2 || looks > 60 {
				t.Fatalf("caught at %d after %d looks", size, looks)
			}
			return
		}
		wait = nextLook(size, size-before, limit, wait)
	}
}

func TestNewRotatorRefuses(t *testing.T) {
	f := newRuntime(t)
	for _, cfg := range []Config{{MaxSize: -1}, {MaxFiles: 1}, {Workers: -1}, {Interval: -1}} {
		if _, err := NewRotator(cfg, f, f); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	if _, err := NewRotator(Config{}, nil, f); err == nil {
		t.Error("no containers")
	}
}
