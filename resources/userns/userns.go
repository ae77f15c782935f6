package userns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// Ranges gives them away. Use [New]. Safe for concurrent use.
type Ranges struct {
	cfg Config
	log *slog.Logger

	mu    sync.Mutex
	known bool // what is on disk was read
	owned IDs
	held  map[string]IDs  // by pod UID
	lost  map[string]bool // pods whose note could not be read
}

// New checks the configuration; nothing is read before the first Range.
func New(cfg Config, log *slog.Logger) (*Ranges, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Ranges{cfg: cfg, log: log, held: map[string]IDs{}, lost: map[string]bool{}}, nil
}

// Range is the pod's range of IDs on the host, from ID 0 in the pod on. It is
// noted on disk before it is given away.
func (r *Ranges) Range(ctx context.Context, uid string) (IDs, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.learn(ctx); err != nil {
		return IDs{}, fmt.Errorf("user namespaces: %w", err)
	}
	if ids, ok := r.held[uid]; ok {
		return ids, nil
	}
	ids, ok := pick(r.choice())
	if !ok {
		return IDs{}, errors.New("create user namespace: could not find an empty slot to allocate a user namespace")
	}
	if err := writeNote(r.podDir(uid), ids); err != nil {
		return IDs{}, fmt.Errorf("create user namespace: %w", err)
	}
	r.held[uid] = ids
	r.log.Info("users for a pod", "uid", uid, "first", ids.First, "length", ids.Length)
	return ids, nil
}

// Release takes the pod's range back. Unknown UIDs are fine.
func (r *Ranges) Release(uid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := removeNote(r.podDir(uid)); err != nil {
		return fmt.Errorf("release user namespace: %w", err)
	}
	delete(r.held, uid)
	delete(r.lost, uid)
	return nil
}

func (r *Ranges) podDir(uid string) string { return filepath.Join(r.cfg.PodsDir, uid) }

func (r *Ranges) choice() pickInput {
	in := pickInput{owned: r.owned, size: uint32(r.cfg.IDsPerPod), lost: len(r.lost) > 0}
	for _, ids := range r.held {
		in.held = append(in.held, ids)
	}
	return in
}

// learn reads once what there is to give away and what was given away before.
func (r *Ranges) learn(ctx context.Context) error {
	if r.known {
		return nil
	}
	size := uint32(r.cfg.IDsPerPod)
	owned := IDs{First: size, Length: -size} // up to 2^32
	if r.cfg.Owned != nil {
		var err error
		if owned, err = r.cfg.Owned(ctx); err != nil {
			return err
		}
	}
	if err := r.cfg.check(owned); err != nil {
		return err
	}
	if err := r.readNotes(); err != nil {
		return err
	}
	r.owned, r.known = owned, true
	return nil
}

func (r *Ranges) readNotes() error {
	pods, err := os.ReadDir(r.cfg.PodsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, pod := range pods {
		ids, err := readNote(r.podDir(pod.Name()))
		switch {
		case errors.Is(err, errNoNote):
		case err != nil:
			r.lost[pod.Name()] = true
			r.log.Error("the users of a pod are not known any more; others get theirs from the far end of the range until it is gone",
				"uid", pod.Name(), "err", err)
		default:
			r.held[pod.Name()] = ids
		}
	}
	return nil
}
