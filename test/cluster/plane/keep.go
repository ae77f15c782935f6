package plane

import (
	"context"
	"fmt"
	"sync"
	"time"

	"nodekit.dev/test/integration/daemon"
)

// kept is a part that is started again when it ends by itself, as systemd or a
// kubelet would: the scheduler ends when it finds its cache to be wrong, which a
// killed API server can bring about.
type kept struct {
	start func() (*daemon.Daemon, error)

	mu      sync.Mutex
	current *daemon.Daemon
	stopped chan struct{} // closed by stop
	done    chan struct{} // closed when nobody starts it again
	failed  error
}

// keep starts a part and whoever starts it again.
func keep(start func() (*daemon.Daemon, error)) (*kept, error) {
	first, err := start()
	if err != nil {
		return nil, err
	}
	k := &kept{start: start, current: first, stopped: make(chan struct{}), done: make(chan struct{})}
	go k.run(first)
	return k, nil
}

// pause is how long a part stays down when it has ended by itself.
const pause = time.Second

func (k *kept) run(d *daemon.Daemon) {
	defer close(k.done)
	for {
		select {
		case <-d.Done():
		case <-k.stopped:
			return
		}
		select {
		case <-time.After(pause):
		case <-k.stopped:
			return
		}
		next, err := k.start()
		k.mu.Lock()
		if err != nil {
			k.failed = fmt.Errorf("start again what ended with %s: %w", d.State(), err)
			k.mu.Unlock()
			return
		}
		k.current, d = next, next
		k.mu.Unlock()
	}
}

func (k *kept) alive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current.Alive()
}

// stop ends the part with SIGKILL, for good.
func (k *kept) stop(ctx context.Context) error {
	close(k.stopped)
	<-k.done
	if k.failed != nil {
		return k.failed
	}
	return k.current.Kill(ctx)
}
