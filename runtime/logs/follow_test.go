package logs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// screen is a writer that tests can wait on.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) wait(t *testing.T, want string) {
	t.Helper()
	eventually(t, "output "+want, func() bool { return s.String() == want })
}

func appendTo(t *testing.T, path, content string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
}

func follow(t *testing.T, path string, opts Options) (*screen, func() error) {
	out, ended, done := &screen{}, make(chan struct{}), make(chan error, 1)
	opts.Follow = true
	go func() {
		done <- Copy(t.Context(), Request{Path: path, Options: opts, Stdout: out, Stderr: out, Ended: ended})
	}()
	return out, func() error {
		close(ended)
		return <-done
	}
}

func TestFollowShowsWholeLinesAsTheyCome(t *testing.T) {
	path := writeLog(t, raw(0, Stdout, "F", "old")+raw(1, Stdout, "F", "newer"))
	out, end := follow(t, path, Options{Tail: Last(1)})
	out.wait(t, "newer\n")
	whole := raw(2, Stdout, "F", "torn")
	appendTo(t, path, whole[:20])
	appendTo(t, path, whole[20:])
	out.wait(t, "newer\ntorn\n")
	appendTo(t, path, raw(3, Stdout, "P", "pro"))
	appendTo(t, path, raw(4, Stderr, "F", "err"))
	appendTo(t, path, raw(5, Stdout, "F", "mpt"))
	out.wait(t, "newer\ntorn\nerr\nprompt\n")
	appendTo(t, path, raw(6, Stdout, "P", "never ends"))
	if err := end(); err != nil {
		t.Fatal(err)
	}
	out.wait(t, "newer\ntorn\nerr\nprompt\nnever ends")
}

func TestFollowCrossesRotationsWithALateWrite(t *testing.T) {
	path := writeLog(t, raw(0, Stdout, "F", "a"))
	out, end := follow(t, path, Options{})
	out.wait(t, "a\n")
	aside := path + ".20260501-100001"
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	appendTo(t, aside, raw(1, Stdout, "F", "b")) // before the runtime reopened
	out.wait(t, "a\nb\n")
	appendTo(t, path, raw(2, Stdout, "F", "d"))
	appendTo(t, aside, raw(2, Stdout, "F", "c")) // was on its way
	out.wait(t, "a\nb\nc\nd\n")
	if err := end(); err != nil {
		t.Fatal(err)
	}
}

// While the reader was busy, its file was rotated, compressed, and others
// after it too.
func TestSlowFollowerReadsWhatWasRotatedMeanwhile(t *testing.T) {
	path := writeLog(t, raw(0, Stdout, "F", "a")+raw(1, Stdout, "F", "b"))
	src, err := openSource(path, os.Open)
	if err != nil {
		t.Fatal(err)
	}
	stamp := func(second int) string {
		return path + "." + wallClock(logStart.Add(secondsOf(second))).Format(stampLayout)
	}
	if err := os.Rename(path, stamp(5)); err != nil {
		t.Fatal(err)
	}
	if err := compressFile(t.Context(), stamp(5)); err != nil {
		t.Fatal(err)
	}
	appendTo(t, stamp(9), raw(6, Stdout, "F", "c"))
	if err := compressFile(t.Context(), stamp(9)); err != nil {
		t.Fatal(err)
	}
	appendTo(t, stamp(12), raw(10, Stdout, "F", "d"))
	appendTo(t, path, raw(13, Stdout, "F", "e"))

	out, ended := &screen{}, make(chan struct{})
	close(ended)
	req := Request{Path: path, Options: Options{Follow: true}, Stdout: out, Ended: ended}
	req.Log = discard()
	f := newFollower(req)
	defer f.close()
	c := &copier{req: req, src: src, follower: f, out: newPrinter(req)}
	if err := c.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer c.src.close()
	if got := out.String(); got != "a\nb\nc\nd\ne\n" {
		t.Fatalf("read %q", got)
	}
}

func TestFollowStartsBeforeTheRuntimeReopened(t *testing.T) {
	path := writeLog(t, raw(0, Stdout, "F", "a"))
	if err := os.Rename(path, path+".20260501-100001"); err != nil {
		t.Fatal(err)
	}
	out, end := follow(t, path, Options{})
	out.wait(t, "a\n")
	appendTo(t, path, raw(2, Stdout, "F", "b"))
	out.wait(t, "a\nb\n")
	if err := end(); err != nil {
		t.Fatal(err)
	}
}

func TestFollowStartsAgainWhenTheLogIsCut(t *testing.T) {
	path := writeLog(t, raw(0, Stdout, "F", "a")+raw(1, Stdout, "F", "b"))
	out, end := follow(t, path, Options{})
	out.wait(t, "a\nb\n")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, raw(2, Stdout, "F", "c"))
	out.wait(t, "a\nb\nc\n")
	if err := end(); err != nil {
		t.Fatal(err)
	}
}

func TestFollowEndsWithContextLimitAndDirectory(t *testing.T) {
	path := writeLog(t, raw(0, Stdout, "F", "abc"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	out := &screen{}
	go func() { done <- Copy(ctx, Request{Path: path, Options: Options{Follow: true}, Stdout: out}) }()
	out.wait(t, "abc\n")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := Copy(t.Context(), Request{Path: path, Options: Options{Follow: true, LimitBytes: Last(2)}, Stdout: &screen{}}); err != nil {
		t.Fatal(err)
	}
	gone, end := follow(t, path, Options{})
	gone.wait(t, "abc\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
}

func secondsOf(n int) time.Duration { return time.Duration(n) * time.Second }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
