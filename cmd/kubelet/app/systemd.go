package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// notifySystemd sends a state such as "READY=1" to the service manager that
// started this process; false where none waits for it.
func notifySystemd(ctx context.Context, state string) (bool, error) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return false, nil
	}
	if socket[0] == '@' { // a name without a file
		socket = "\x00" + socket[1:]
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixgram", socket)
	if err != nil {
		return false, fmt.Errorf("systemd's notify socket: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return false, fmt.Errorf("systemd's notify socket: %w", err)
	}
	return true, nil
}

// minWatchdog is the shortest WatchdogSec that can be kept.
const minWatchdog = time.Second

// watchdogPeriod is how often systemd wants to hear from this process, half
// of the time after which it would end it; 0: it does not want to.
func watchdogPeriod(getenv func(string) string, pid int) (time.Duration, error) {
	usec := getenv("WATCHDOG_USEC")
	if usec == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("configure watchdog: WATCHDOG_USEC %q must be a number of microseconds above 0", usec)
	}
	if forPID := getenv("WATCHDOG_PID"); forPID != "" && forPID != strconv.Itoa(pid) {
		return 0, nil // meant for a parent
	}
	timeout := time.Duration(n) * time.Microsecond
	if timeout <= minWatchdog {
		return 0, fmt.Errorf("configure watchdog timeout too small: %v; set WatchdogSec above %v", timeout, minWatchdog)
	}
	return timeout / 2, nil
}

// watchdog tells systemd every period that the agent is alive, as long as it is
// healthy: what hangs is then started anew. The checks of /healthz decide.
type watchdog struct {
	period  time.Duration // 0: systemd does not ask
	healthy func(context.Context) error
	notify  func(ctx context.Context, state string) (bool, error)
	log     *slog.Logger
}

// Run ends with ctx. Nothing here ends the agent.
func (w *watchdog) Run(ctx context.Context) error {
	if w.period == 0 {
		return nil
	}
	w.log.Info("Starting systemd watchdog with interval", "interval", w.period)
	tick := time.NewTicker(w.period)
	defer tick.Stop()
	for {
		w.tellOnce(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (w *watchdog) tellOnce(ctx context.Context) {
	checkCtx, cancel := context.WithTimeout(ctx, w.period)
	defer cancel()
	if err := w.healthy(checkCtx); err != nil {
		if ctx.Err() == nil {
			w.log.Error("Do not notify watchdog this iteration as the kubelet is reportedly not healthy", "err", err)
		}
		return
	}
	if err := w.tell(checkCtx); err != nil && ctx.Err() == nil {
		w.log.Error("Failed to notify watchdog", "err", err)
	}
}

// One message is sent this often before the next period, this far apart.
const (
	watchdogTries = 2
	watchdogPause = time.Second
)

func (w *watchdog) tell(ctx context.Context) error {
	for try := 1; ; try++ {
		heard, err := w.notify(ctx, "WATCHDOG=1")
		if err == nil && !heard {
			return errors.New("failed to notify systemd watchdog, notification not supported - (i.e. NOTIFY_SOCKET is unset)")
		}
		if err == nil || try == watchdogTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchdogPause):
		}
	}
}
