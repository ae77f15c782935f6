package handlers

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/node/podactor"
)

// commands answers each command by its first word; unknown ones do not start.
type commands map[string]ExecResult

func (c commands) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (ExecResult, error) {
	if cmd[0] == "hang" {
		<-ctx.Done()
		return ExecResult{}, ctx.Err()
	}
	res, ok := c[cmd[0]]
	if !ok {
		return res, errors.New("no such file in " + id)
	}
	return res, nil
}

func newRunner(t *testing.T, exec Execer) (*Runner, *bytes.Buffer) {
	t.Helper()
	var logged bytes.Buffer
	r, err := New(Default(), exec, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return r, &logged
}

func request(h *corev1.LifecycleHandler) podactor.HandlerRequest {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "side", Ports: []corev1.ContainerPort{{Name: "adm", ContainerPort: 9000}}}},
		Containers:     []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}}},
	}}
	return podactor.HandlerRequest{Pod: pod, Container: "main", ContainerID: "c1", Handler: h, PodIPs: []string{"10.1.2.3", "fd00::3"}}
}

func TestExec(t *testing.T) {
	long := strings.Repeat("x", 2*outputTail) + "the end"
	r, _ := newRunner(t, commands{
		"ok":   {Stdout: []byte("fine")},
		"fail": {ExitCode: 3, Stdout: []byte("out "), Stderr: []byte("err")},
		"long": {ExitCode: 1, Stderr: []byte(long)},
	})
	for name, tc := range map[string]struct {
		cmd  []string
		want string
	}{
		"success":       {[]string{"ok"}, ""},
		"exit code":     {[]string{"fail", "-x"}, `exec ["fail" "-x"]: exit code 3, output: "out err"`},
		"no such":       {[]string{"none"}, `exec ["none"]: no such file in c1`},
		"output is cut": {[]string{"long"}, `exec ["long"]: exit code 1, output: "` + long[len(long)-outputTail:] + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := r.RunHandler(t.Context(), request(&corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: tc.cmd}}))
			if got := text(err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// timeouts records what each command is given.
type timeouts []time.Duration

func (o *timeouts) ExecSync(_ context.Context, _ string, _ []string, timeout time.Duration) (ExecResult, error) {
	*o = append(*o, timeout)
	return ExecResult{}, nil
}

func TestExecGetsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen timeouts
		r, _ := newRunner(t, &seen)
		hook := request(&corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}})
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		if err := errors.Join(r.RunHandler(ctx, hook), r.RunHandler(t.Context(), hook)); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		if err := r.RunHandler(ctx, hook); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a hook without time left says %v", err)
		}
		if diff := cmp.Diff(timeouts{7 * time.Second, 0}, seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newRunner(t, nil)
		hook := request(&corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 20}})
		begin := time.Now()
		if err := r.RunHandler(t.Context(), hook); err != nil || time.Since(begin) != 20*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin = time.Now()
		err := r.RunHandler(ctx, hook)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

func TestOtherHandlers(t *testing.T) {
	r, _ := newRunner(t, nil)
	if err := r.RunHandler(t.Context(), request(nil)); err != nil {
		t.Errorf("no handler: %v", err)
	}
	tcp := &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}
	if err := r.RunHandler(t.Context(), request(tcp)); err == nil || !strings.Contains(err.Error(), "invalid handler") {
		t.Errorf("tcpSocket: %v", err)
	}
}

func TestTargetURL(t *testing.T) {
	for name, tc := range map[string]struct {
		get       corev1.HTTPGetAction
		container string
		ips       []string
		want      string // URL, or a part of the error behind "!"
	}{
		"defaults":                        {corev1.HTTPGetAction{Port: intstr.FromInt32(80)}, "main", []string{"10.0.0.9"}, "http://10.0.0.9:80"},
		"IPv6":                            {corev1.HTTPGetAction{Path: "/a", Port: intstr.FromInt32(80)}, "main", []string{"fd00::1"}, "http://[fd00::1]:80/a"},
		"query, no slash":                 {corev1.HTTPGetAction{Path: "a/b?x=1&y", Port: intstr.FromInt32(80)}, "main", []string{"h"}, "http://h:80/a/b?x=1&y"},
		"host and scheme":                 {corev1.HTTPGetAction{Host: "other", Scheme: "HTTPS", Port: intstr.FromInt32(443)}, "main", nil, "https://other:443"},
		"named port":                      {corev1.HTTPGetAction{Port: intstr.FromString("web")}, "main", []string{"h"}, "http://h:8080"},
		"named, init":                     {corev1.HTTPGetAction{Port: intstr.FromString("adm")}, "side", []string{"h"}, "http://h:9000"},
		"number as text":                  {corev1.HTTPGetAction{Port: intstr.FromString("81")}, "main", []string{"h"}, "http://h:81"},
		"another's port name":             {corev1.HTTPGetAction{Port: intstr.FromString("adm")}, "main", []string{"h"}, `!port "adm"`},
		"no port":                         {corev1.HTTPGetAction{}, "main", []string{"h"}, `!port "0"`},
		"no address":                      {corev1.HTTPGetAction{Port: intstr.FromInt32(80)}, "main", nil, "!no address"},
		"odd path":                        {corev1.HTTPGetAction{Path: "/%zz", Port: intstr.FromInt32(80)}, "main", []string{"h"}, "http://h:80/%25zz"},
		"host is not taken from the path": {corev1.HTTPGetAction{Path: "//evil/x", Port: intstr.FromInt32(80)}, "main", []string{"h"}, "http://h:80/x"},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(&corev1.LifecycleHandler{HTTPGet: &tc.get})
			req.Container, req.PodIPs = tc.container, tc.ips
			got, err := targetURL(req)
			if part, isError := strings.CutPrefix(tc.want, "!"); isError {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want %q in it", err, part)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("got %v, %v; want %s", got, err, tc.want)
			}
		})
	}
}

// hookTo is a request to a test server, as if it were the pod.
func hookTo(t *testing.T, server *httptest.Server, get corev1.HTTPGetAction) podactor.HandlerRequest {
	t.Helper()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	get.Port = intstr.FromInt(port)
	req := request(&corev1.LifecycleHandler{HTTPGet: &get})
	req.PodIPs = []string{at.Hostname()}
	return req
}

func TestHTTPGetHeaders(t *testing.T) {
	for name, tc := range map[string]struct {
		own  []corev1.HTTPHeader
		want map[string]string
	}{
		"defaults": {nil, map[string]string{"User-Agent": "kube-lifecycle/1.37", "Accept": "*/*"}},
		"own": {
			[]corev1.HTTPHeader{{Name: "user-agent", Value: "mine"}, {Name: "Accept", Value: ""}, {Name: "X-A", Value: "1"}},
			map[string]string{"User-Agent": "mine", "X-A": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for name := range r.Header {
					got[name] = r.Header.Get(name)
				}
				w.WriteHeader(http.StatusInternalServerError) // any answer is a success
			}))
			defer server.Close()
			r, _ := newRunner(t, nil)
			if err := r.RunHandler(t.Context(), hookTo(t, server, corev1.HTTPGetAction{HTTPHeaders: tc.own})); err != nil {
				t.Fatal(err)
			}
			delete(got, "Connection")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHTTPGetHostHeader(t *testing.T) {
	hosts := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hosts <- r.Host }))
	defer server.Close()
	r, _ := newRunner(t, nil)
	get := corev1.HTTPGetAction{HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "site.test"}}}
	if err := r.RunHandler(t.Context(), hookTo(t, server, get)); err != nil {
		t.Fatal(err)
	}
	if got := <-hosts; got != "site.test" {
		t.Errorf("Host %q", got)
	}
}

func TestHTTPS(t *testing.T) {
	hit := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hit <- r.URL.String() }))
	defer server.Close()
	r, logged := newRunner(t, nil)
	get := corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, Path: "/stop"}
	if err := r.RunHandler(t.Context(), hookTo(t, server, get)); err != nil {
		t.Fatal(err)
	}
	if got := <-hit; got != "/stop" || logged.Len() > 0 {
		t.Errorf("asked for %q, logged %s", got, logged)
	}
}

func TestHTTPSFallsBackWithoutSecrets(t *testing.T) {
	secrets := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		secrets <- r.Header.Get("Authorization") + r.Header.Get("X-Other")
	}))
	defer server.Close()
	r, logged := newRunner(t, nil)
	get := corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, HTTPHeaders: []corev1.HTTPHeader{
		{Name: "Authorization", Value: "secret"}, {Name: "X-Other", Value: "plain"},
	}}
	if err := r.RunHandler(t.Context(), hookTo(t, server, get)); err != nil {
		t.Fatal(err)
	}
	if got := <-secrets; got != "plain" {
		t.Errorf("headers sent in the clear: %q", got)
	}
	if !strings.Contains(logged.String(), "speaks HTTP") {
		t.Errorf("no warning: %s", logged)
	}
}

func TestHTTPGetFailures(t *testing.T) {
	r, _ := newRunner(t, nil)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	err := r.RunHandler(t.Context(), hookTo(t, closed, corev1.HTTPGetAction{Path: "/stop"}))
	var op *net.OpError
	if !errors.As(err, &op) || !strings.Contains(err.Error(), closed.URL+"/stop") {
		t.Errorf("nobody listens: %v", err)
	}

	asked := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer hung.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if err := r.RunHandler(ctx, hookTo(t, hung, corev1.HTTPGetAction{})); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestRedirectsStayOnTheHost(t *testing.T) {
	paths := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.Path
		switch r.URL.Path {
		case "/a":
			http.Redirect(w, r, "/b", http.StatusFound)
		case "/b":
			http.Redirect(w, r, "http://192.0.2.1:1/away", http.StatusFound)
		}
	}))
	defer server.Close()
	r, _ := newRunner(t, nil)
	if err := r.RunHandler(t.Context(), hookTo(t, server, corev1.HTTPGetAction{Path: "/a"})); err != nil {
		t.Fatal(err)
	}
	close(paths)
	var got []string
	for p := range paths {
		got = append(got, p)
	}
	if diff := cmp.Diff([]string{"/a", "/b"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
