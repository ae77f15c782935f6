package tcpcheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/internal/needtest"
	"nodekit.dev/probe"
)

func listen(t *testing.T, host string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		needtest.SkipOrFail(t, "needs an address of loopback: "+err.Error())
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestCheck(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			l := listen(t, host)
			target := Target{Address: l.Addr().String()}
			if got := Check(t.Context(), target); got != (probe.Outcome{Result: probe.Success}) {
				t.Errorf("%+v", got)
			}
			_ = l.Close()
			want := probe.Outcome{Result: probe.Failure, Output: fmt.Sprintf("dial tcp %s: connect: connection refused", l.Addr())}
			if got := Check(t.Context(), target); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestHangsUp: the server sees a connection, and its end at once.
func TestHangsUp(t *testing.T) {
	l := listen(t, "127.0.0.1")
	if got := Check(t.Context(), Target{Address: l.Addr().String()}); got.Result != probe.Success {
		t.Fatalf("%+v", got)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes", n)
	}
	_ = conn.Close()
}

// TestDeadline: users know this text from clients with a timeout of their own.
func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	got := Check(ctx, Target{Address: "192.0.2.1:80"})
	if want := (probe.Outcome{Result: probe.Failure, Output: "dial tcp 192.0.2.1:80: i/o timeout"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// linger is a connection, of whatever kind, that tells how it ends.
type linger struct {
	net.Conn
	told *[]string
}

func (l linger) SetLinger(seconds int) error {
	*l.told = append(*l.told, fmt.Sprint("linger ", seconds))
	return errors.New("no such option")
}

func (l linger) Close() error {
	*l.told = append(*l.told, "close")
	return l.Conn.Close()
}

// TestOwnDial: it gets what is to be dialled and the check's context, and its
// connections are reset too.
func TestOwnDial(t *testing.T) {
	type key struct{}
	var told []string
	got := Check(context.WithValue(t.Context(), key{}, "the check's"), Target{
		Address: "a.test:80",
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			told = append(told, network, address, ctx.Value(key{}).(string))
			conn, _ := net.Pipe()
			return linger{conn, &told}, nil
		},
	})
	if want := "[tcp a.test:80 the check's linger 0 close]"; got.Result != probe.Success || fmt.Sprint(told) != want {
		t.Errorf("%+v, %v, want %v", got, told, want)
	}
}

func tcpSocket(host string, port intstr.IntOrString) probe.Target {
	return probe.Target{
		Host:    "fd00::7",
		Ports:   []corev1.ContainerPort{{Name: "db", ContainerPort: 5432}},
		Handler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: host, Port: port}},
	}
}

func TestTargetOf(t *testing.T) {
	for want, target := range map[string]probe.Target{
		"[fd00::7]:5432": tcpSocket("", intstr.FromString("db")),
		"10.0.0.7:80":    tcpSocket("10.0.0.7", intstr.FromInt32(80)),
	} {
		if got, err := TargetOf(target); err != nil || got.Address != want {
			t.Errorf("got %q, %v, want %q", got.Address, err, want)
		}
	}
	noHost := tcpSocket("", intstr.FromInt32(80))
	noHost.Host = ""
	for name, target := range map[string]probe.Target{
		"no tcpSocket": {Host: "10.0.0.7"}, "no host": noHost, "port name": tcpSocket("", intstr.FromString("none")),
	} {
		if got, err := TargetOf(target); err == nil {
			t.Errorf("%s: %q", name, got.Address)
		}
	}
}
