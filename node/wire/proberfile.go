package wire

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"nodekit.dev/internal/atomicfile"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/probe"
)

const (
	// probesFile below the root directory keeps the results of probes over a
	// restart of the agent.
	probesFile = "prober_state"

	// probesPause is the least time between two writes of that file. A crash may
	// lose what changed meanwhile, which the first checks after it find again.
	probesPause = 100 * time.Millisecond
)

// read gives the manager what an agent before this one knew. A file that is
// damaged stops nobody: it is set aside, and probes begin with what was told
// of their containers.
func (p *Prober) read() {
	if p.file == "" {
		return
	}
	data, err := atomicfile.ReadChecked(p.file)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var saved []probe.Saved
	if err == nil {
		err = json.Unmarshal(data, &saved)
	}
	if err != nil {
		aside, moveErr := atomicfile.SetAside(p.file, "damaged")
		p.log.Warn("the results of probes before the restart are lost; every probe is made at once",
			"file", p.file, "movedTo", aside, "err", errors.Join(err, moveErr))
		return
	}
	p.manager.Restore(saved)
}

// keep writes the file soon after each change, and a last time when ctx ends,
// wherever that finds it.
func (p *Prober) keep(ctx context.Context) error {
	if p.file == "" {
		return nil
	}
	failed := false
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-p.manager.Changes():
		}
		err := p.write()
		if err != nil && !failed {
			p.log.Warn("can not keep the results of probes for the next start of the agent", "file", p.file, "err", err)
		}
		failed = err != nil
		_ = tasks.Pause(ctx, probesPause) // its end is seen above
	}
	return ctx.Err()
}

func (p *Prober) write() error {
	p.restore.Do(p.read) // what is not read yet must not be overwritten
	data, err := json.Marshal(p.manager.Saved())
	if err != nil {
		return err
	}
	return atomicfile.WriteChecked(p.file, data, 0o600)
}
