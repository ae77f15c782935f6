package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Options say what to read of a log. The zero value is all of it, both
// streams, once.
type Options struct {
	// Since leaves out lines that began before.
	Since time.Time
	// Tail is how many of the last lines to begin with; nil: all. Lines are
	// counted as the container wrote them.
	Tail *int64
	// LimitBytes ends the output exactly there; nil: no limit.
	LimitBytes *int64
	// Timestamps puts the time of its beginning before each line.
	Timestamps bool
	// Follow waits for more until the container has ended or ctx ends.
	Follow bool
	// Stream is Stdout or Stderr; empty: both.
	Stream string
}

// Last is for Options.Tail and LimitBytes.
func Last(n int64) *int64 { return &n }

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	switch {
	case o.Tail != nil && *o.Tail < 0:
		return fmt.Errorf("tail %d: must not be negative", *o.Tail)
	case o.LimitBytes != nil && *o.LimitBytes < 0:
		return fmt.Errorf("limit of %d bytes: must not be negative", *o.LimitBytes)
	case o.Stream != "" && o.Stream != Stdout && o.Stream != Stderr:
		return fmt.Errorf("stream %q: must be %q or %q", o.Stream, Stdout, Stderr)
	}
	return nil
}

// Request asks for a copy of one log.
type Request struct {
	// Path of the log, such as /var/log/pods/ns_pod_uid/web/0.log.
	Path string
	// Within is a directory that the log must not leave: below it no symlink is
	// followed and nothing but a regular file is read. For logs whose path
	// somebody else may have a hand in. Empty: symlinks are followed.
	Within string
	Options
	// Stdout and Stderr get the lines; nil: dropped. They may be the same.
	Stdout, Stderr io.Writer
	// Ended is closed when the container has ended, which ends a following
	// Copy after it read what is left; nil: only ctx does.
	Ended <-chan struct{}
	// Opened is called once the log is open, before its first line; nil: nobody
	// wants to know.
	Opened func()
	// Log is told about entries that can not be read; nil: nobody.
	Log *slog.Logger
}

// Copy writes the lines of a log. Only the log itself is read, not what was
// rotated before (as the stock kubelet); from there on it follows through
// rotations without a gap. A line whose newline is not written yet is left for
// later. Errors of the writers and of ctx are returned as they are; a missing
// log fits os.ErrNotExist.
func Copy(ctx context.Context, req Request) (err error) {
	if err := req.Validate(); err != nil {
		return fmt.Errorf("read log %s: %w", req.Path, err)
	}
	if req.Log == nil {
		req.Log = slog.New(slog.DiscardHandler)
	}
	var f *follower
	if req.Follow {
		// Watched before it is read, so that nothing falls in between.
		f = newFollower(req)
		defer func() { err = errors.Join(err, f.close()) }()
	}
	src, err := openLatest(req.Path, within(req.Within))
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	c := &copier{req: req, src: src, follower: f, out: newPrinter(req)}
	defer func() { err = errors.Join(err, c.src.close()) }()
	if err := c.seekTail(); err != nil {
		return fmt.Errorf("read log %s: %w", req.Path, err)
	}
	if req.Opened != nil {
		req.Opened()
	}
	err = c.run(ctx)
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

type copier struct {
	req      Request
	src      *source
	tail     *tailStart // nil once it does not matter any more
	join     joiner
	out      *printer
	follower *follower
	newest   time.Time // of the entries read
}

func (c *copier) seekTail() error {
	if c.req.Tail == nil || c.src.gz != nil {
		return nil
	}
	info, err := c.src.file.Stat()
	if err != nil {
		return err
	}
	t, err := findTail(c.src.file, info.Size(), *c.req.Tail, c.req.Stream)
	if err != nil {
		return err
	}
	c.tail = &t
	return c.src.seek(t.offset)
}

func (c *copier) run(ctx context.Context) error {
	for {
		at := c.src.read - int64(len(c.src.held))
		raw, err := c.src.next()
		switch {
		case err == nil:
			if err := c.entry(raw, at); err != nil {
				return err
			}
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("read log %s: %w", c.req.Path, err)
		default:
			more, err := c.wait(ctx)
			if err != nil {
				return err
			}
			if !more {
				return c.finish()
			}
		}
	}
}

// wait returns when there may be more to read, or false at the end.
func (c *copier) wait(ctx context.Context) (bool, error) {
	if c.follower == nil {
		return false, nil
	}
	next, more, err := c.follower.wait(ctx, c.src, c.newest)
	if err != nil || next == nil {
		return more, err
	}
	c.tail = nil
	old := c.src
	c.src = next
	return true, old.close()
}

func (c *copier) entry(raw []byte, at int64) error {
	if len(raw) == 0 {
		return nil
	}
	e, err := ParseEntry(raw)
	if err != nil {
		c.req.Log.Warn("log entry skipped", "path", c.req.Path, "offset", at, "err", err)
		return nil
	}
	switch {
	case c.req.Stream != "" && e.Stream != c.req.Stream,
		c.tail != nil && !c.tail.has(e.Stream, at),
		!c.src.after.IsZero() && !e.Time.After(c.src.after):
		return nil
	}
	if e.Time.After(c.newest) {
		c.newest = e.Time
	}
	if l, ok := c.join.add(e); ok {
		return c.out.print(l)
	}
	return nil
}

// finish writes lines that will never end.
func (c *copier) finish() error {
	for _, l := range c.join.rest() {
		if err := c.out.print(l); err != nil {
			return err
		}
	}
	return nil
}
