package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// manager is the socket of a service manager.
func manager(t *testing.T, dir string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify.sock"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", conn.LocalAddr().String())
	return conn
}

func heard(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// A kubelet under systemd says when it is ready, that it is alive, and that it stops.
func TestSystemd(t *testing.T) {
	b := newBed(t)
	conn := manager(t, b.dir)
	t.Setenv("WATCHDOG_USEC", "2000000")
	_, stop := start(t, b.flags(t, ""))
	got := []string{heard(t, conn), heard(t, conn)}
	if text := strings.Join(got, " "); text != "READY=1 WATCHDOG=1" && text != "WATCHDOG=1 READY=1" {
		t.Errorf("heard %q", text)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for got := ""; got != "STOPPING=1"; got = heard(t, conn) {
	}
}

func TestNotifySystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if heard, err := notifySystemd(t.Context(), "READY=1"); heard || err != nil {
		t.Errorf("without a manager: %t, %v", heard, err)
	}
	t.Setenv("NOTIFY_SOCKET", "/nowhere/notify.sock")
	if _, err := notifySystemd(t.Context(), "READY=1"); err == nil || !strings.Contains(err.Error(), "systemd's notify socket") {
		t.Errorf("a manager that is gone: %v", err)
	}
}

func TestWatchdogPeriod(t *testing.T) {
	for _, row := range []struct {
		usec, pid string
		want      time.Duration
		fails     string
	}{
		{usec: "", want: 0},
		{usec: "30000000", want: 15 * time.Second},
		{usec: "30000000", pid: "7", want: 15 * time.Second},
		{usec: "30000000", pid: "8", want: 0},
		{usec: "1000000", fails: "configure watchdog timeout too small: 1s"},
		{usec: "soon", fails: `configure watchdog: WATCHDOG_USEC "soon" must be a number`},
		{usec: "-5", fails: "configure watchdog: "},
	} {
		env := map[string]string{"WATCHDOG_USEC": row.usec, "WATCHDOG_PID": row.pid}
		got, err := watchdogPeriod(func(name string) string { return env[name] }, 7)
		if got != row.want || (err == nil) != (row.fails == "") || err != nil && !strings.HasPrefix(err.Error(), row.fails) {
			t.Errorf("%+v: %v, %v", row, got, err)
		}
	}
}

// An agent that is not healthy is not kept alive; a message that gets lost is
// sent again.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		var sent []time.Duration
		begun, sick, lost := time.Now(), errors.New("the node hangs"), errors.New("lost")
		w := &watchdog{
			period: 10 * time.Second, log: slog.New(slog.NewTextHandler(&logs, nil)),
			healthy: func(context.Context) error {
				if now := time.Since(begun); now > 15*time.Second && now < 25*time.Second {
					return sick
				}
				return nil
			},
			notify: func(context.Context, string) (bool, error) {
				sent = append(sent, time.Since(begun).Round(time.Second))
				if len(sent) == 1 {
					return false, lost
				}
				return true, nil
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{0, time.Second, 10 * time.Second, 30 * time.Second}; !equal(sent, want) {
			t.Errorf("sent after %v, want %v", sent, want)
		}
		if !strings.Contains(logs.String(), "Do not notify watchdog this iteration as the kubelet is reportedly not healthy") {
			t.Errorf("log: %s", &logs)
		}
	})
}

func equal(a, b []time.Duration) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
