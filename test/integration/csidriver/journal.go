package csidriver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Op is a call of the Node service.
type Op string

// The calls that change something, and those that look.
const (
	Stage     Op = "NodeStageVolume"
	Publish   Op = "NodePublishVolume"
	Unpublish Op = "NodeUnpublishVolume"
	Unstage   Op = "NodeUnstageVolume"
	Expand    Op = "NodeExpandVolume"
	Stats     Op = "NodeGetVolumeStats"
	Health    Op = "NodeGetVolumeHealth"
	Info      Op = "NodeGetInfo"
)

func (o Op) changes() bool {
	return slices.Contains([]Op{Stage, Publish, Unpublish, Unstage, Expand}, o)
}

// Call is one call, as the journal has it.
type Call struct {
	Number  int       `json:"number"`
	Op      Op        `json:"op"`
	Volume  string    `json:"volume,omitempty"`
	Staging string    `json:"staging,omitempty"`
	Target  string    `json:"target,omitempty"` // or the volume path of stats and growth
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"` // zero: it is under way, or nobody knows how it ended
	// Code is how gRPC calls the outcome, such as "OK". A call that was held and
	// whose caller then went away is "Canceled".
	Code       string   `json:"code,omitempty"`
	Message    string   `json:"message,omitempty"`
	Violations []string `json:"violations,omitempty"`
	// Done says that the work was done, whatever was answered.
	Done bool `json:"done,omitempty"`
	// Arguments that the specification wants to be the same in a repeated call.
	Fixed string `json:"fixed,omitempty"`
	// Context is the volume context.
	Context map[string]string `json:"context,omitempty"`
	// Required is capacity_range.required_bytes of a growth.
	Required int64 `json:"required,omitempty"`
	// Group is volume_mount_group.
	Group string `json:"group,omitempty"`
	// Flags are the mount flags.
	Flags []string `json:"flags,omitempty"`
}

// OK says that the caller was told that it worked.
func (c Call) OK() bool { return c.Code == "OK" }

// journal is a file of calls: a line when one begins and a line when it ends.
type journal struct {
	mu      sync.Mutex
	file    *os.File
	calls   []Call
	changed chan struct{}
	failed  error
}

// openJournal goes on with a journal, and returns what it has.
func openJournal(path string) (*journal, []Call, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	var calls []Call
	for line := bufio.NewScanner(bytes.NewReader(text)); line.Scan(); {
		var c Call
		if json.Unmarshal(line.Bytes(), &c) != nil || c.Number > len(calls) {
			break // the last line, half written
		}
		if c.Number == len(calls) {
			calls = append(calls, c)
			continue
		}
		calls[c.Number] = c
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &journal{file: file, calls: calls, changed: make(chan struct{})}, slices.Clone(calls), err
}

// begin adds a call and numbers it.
func (j *journal) begin(c Call) Call {
	j.mu.Lock()
	defer j.mu.Unlock()
	c.Number = len(j.calls)
	j.calls = append(j.calls, c)
	j.write(c)
	return c
}

func (j *journal) end(c Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls[c.Number] = c
	j.write(c)
}

// write adds a line and wakes who waits. The lock is held.
func (j *journal) write(c Call) {
	line, err := json.Marshal(c)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	j.failed = errors.Join(j.failed, err)
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) all() ([]Call, <-chan struct{}, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.calls), j.changed, j.failed
}

// Calls are all calls so far that name this volume; empty: all there are.
func (d *Driver) Calls(volume string, ops ...Op) []Call {
	all, _, _ := d.journal.all()
	return slices.DeleteFunc(all, func(c Call) bool {
		return volume != "" && c.Volume != volume || len(ops) > 0 && !slices.Contains(ops, c.Op)
	})
}

// Until waits until check is content with the calls so far. When ctx ends
// first, the error is what check said last.
func (d *Driver) Until(ctx context.Context, check func([]Call) error) error {
	for {
		all, changed, err := d.journal.all()
		if err != nil {
			return fmt.Errorf("csidriver: the journal: %w", err)
		}
		if err = check(all); err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("still not so when %w: %w", context.Cause(ctx), err)
		}
	}
}

// UntilOK waits until a call of that kind for that volume worked, and returns it.
func (d *Driver) UntilOK(ctx context.Context, op Op, volume string) (found Call, err error) {
	err = d.Until(ctx, func(all []Call) error {
		for _, c := range all {
			if c.Op == op && c.Volume == volume && c.OK() {
				found = c
				return nil
			}
		}
		return fmt.Errorf("no %s of volume %q worked", op, volume)
	})
	return found, err
}

// Violations are the calls that the specification forbids, since the folder was
// made.
func (d *Driver) Violations() (found []string) {
	all, _, err := d.journal.all()
	if err != nil {
		found = append(found, fmt.Sprintf("the journal: %v", err))
	}
	for _, c := range all {
		for _, v := range c.Violations {
			found = append(found, fmt.Sprintf("%s of %q at %s: %s", c.Op, c.Volume, c.Began.Format("15:04:05.000"), v))
		}
	}
	return found
}
