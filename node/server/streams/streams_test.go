package streams_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"nodekit.dev/node/server/streams"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// backend is a runtime's streaming server. It speaks SPDY v4 as those do: it
// waits for its streams, runs, tells a status and hangs up.
type backend struct {
	*httptest.Server
	streams int                                       // to wait for
	run     func(map[string]httpstream.Stream) string // the status; empty: it hangs up without one

	mu  sync.Mutex
	got http.Header
}

func newBackend(t *testing.T, streams int, run func(map[string]httpstream.Stream) string) *backend {
	b := &backend{streams: streams, run: run}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *backend) target(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(b.URL + "/exec/token")
	must(t, err)
	return u
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.got = r.Header.Clone()
	b.mu.Unlock()
	if r.URL.Path != "/exec/token" || r.URL.RawQuery != "" {
		http.Error(w, "no such token", http.StatusNotFound)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io", "portforward.k8s.io"}); err != nil {
		return
	}
	arrived := make(chan httpstream.Stream, 10)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		arrived <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	all := map[string]httpstream.Stream{}
	for range b.streams {
		select {
		case s := <-arrived:
			all[s.Headers().Get("streamType")] = s
		case <-conn.CloseChan():
			return
		}
	}
	status := b.run(all)
	for name, s := range all {
		if name != "error" {
			s.Close()
		}
	}
	_, _ = io.WriteString(all["error"], status)
	all["error"].Close()
}

const success = `{"metadata":{},"status":"Success"}`

// front is a server that passes everything on by a proxy.
func front(t *testing.T, cfg streams.Config, serve func(*streams.Proxy, http.ResponseWriter, *http.Request)) *httptest.Server {
	t.Helper()
	proxy := streams.New(cfg, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(proxy, w, r) }))
	t.Cleanup(s.Close)
	return s
}

func command(target *url.URL, o streams.Options) func(*streams.Proxy, http.ResponseWriter, *http.Request) {
	return func(p *streams.Proxy, w http.ResponseWriter, r *http.Request) {
		p.Command(w, r, streams.Target{URL: target, Options: o, Subresource: "exec"})
	}
}

func dial(t *testing.T, s *httptest.Server, protocols ...string) *websocket.Conn {
	t.Helper()
	cfg, err := websocket.NewConfig(strings.Replace(s.URL, "http", "ws", 1), s.URL)
	must(t, err)
	cfg.Protocol = protocols
	cfg.Header.Set("Authorization", "Bearer secret")
	ws, err := websocket.DialConfig(cfg)
	must(t, err)
	t.Cleanup(func() { ws.Close() })
	return ws
}

func send(t *testing.T, ws *websocket.Conn, channel byte, text string) {
	t.Helper()
	must(t, websocket.Message.Send(ws, append([]byte{channel}, text...)))
}

// rest reads all messages to the end, by channel.
func rest(ws *websocket.Conn) map[byte]string {
	all := map[byte]string{}
	for {
		var message []byte
		if err := websocket.Message.Receive(ws, &message); err != nil {
			return all
		}
		all[message[0]] += string(message[1:])
	}
}

// TestTranslate: each stream of v5 is one of v4, stdin ends when the client
// says so, and the status comes last.
func TestTranslate(t *testing.T) {
	back := newBackend(t, 5, func(s map[string]httpstream.Stream) string {
		size, _ := bufio.NewReader(s["resize"]).ReadString('}')
		in, _ := io.ReadAll(s["stdin"])
		fmt.Fprintf(s["stdout"], "%s %s", size, in)
		fmt.Fprint(s["stderr"], strings.Repeat("e", 100_000))
		return success
	})
	var counted []string
	s := front(t, streams.Config{Translate: true, IdleTimeout: time.Minute, WebSocket: func(sub string) { counted = append(counted, sub) }},
		command(back.target(t), streams.Options{Stdin: true, Stdout: true, Stderr: true, TTY: true}))
	ws := dial(t, s, "v5.channel.k8s.io")
	send(t, ws, 4, `{"Width":80}`)
	send(t, ws, 0, "one ")
	send(t, ws, 9, "nobody wants this")
	send(t, ws, 1, "nor this")
	send(t, ws, 0, "two")
	send(t, ws, 255, "\x00")
	got := rest(ws)
	if got[1] != `{"Width":80} one two` || len(got[2]) != 100_000 || got[3] != success || len(got) != 3 {
		t.Errorf("got %.100q", got)
	}
	if len(counted) != 1 || counted[0] != "exec" {
		t.Errorf("counted %v", counted)
	}
	back.mu.Lock()
	defer back.mu.Unlock()
	if back.got.Get("Authorization") != "" || back.got.Get("Sec-Websocket-Key") != "" {
		t.Errorf("the runtime was told %v", back.got)
	}
}

// TestTranslateTellsFailures: those of the runtime in its words, and one that
// goes away without a word is not taken for a success.
func TestTranslateTellsFailures(t *testing.T) {
	failure := `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode"}`
	for name, row := range map[string]struct{ says, want string }{
		"of the command":      {failure, failure},
		"without a last word": {"", "ended the connection without telling how the command ended"},
	} {
		back := newBackend(t, 2, func(map[string]httpstream.Stream) string { return row.says })
		s := front(t, streams.Config{Translate: true}, command(back.target(t), streams.Options{Stdout: true}))
		got := rest(dial(t, s, "v5.channel.k8s.io"))
		var status metav1.Status
		if err := json.Unmarshal([]byte(got[3]), &status); err != nil || status.Status != metav1.StatusFailure || !strings.Contains(got[3], row.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestClientLeaves: the runtime is told, and nothing is left.
func TestClientLeaves(t *testing.T) {
	left := make(chan error, 1)
	back := newBackend(t, 3, func(s map[string]httpstream.Stream) string {
		_, err := io.ReadAll(s["stdin"])
		left <- err
		return success
	})
	s := front(t, streams.Config{Translate: true}, command(back.target(t), streams.Options{Stdin: true, Stdout: true}))
	dial(t, s, "v5.channel.k8s.io").Close()
	<-left
}

// TestBadMessages end the stream and nothing else.
func TestBadMessages(t *testing.T) {
	back := newBackend(t, 3, func(s map[string]httpstream.Stream) string {
		_, _ = io.ReadAll(s["stdin"])
		return success
	})
	s := front(t, streams.Config{Translate: true}, command(back.target(t), streams.Options{Stdin: true, Stdout: true}))
	for _, text := range []string{"", "\x00\x01"} {
		ws := dial(t, s, "v5.channel.k8s.io")
		must(t, websocket.Message.Send(ws, []byte{}))
		send(t, ws, 255, "\x09") // a channel that is not there
		send(t, ws, 255, text)
		rest(ws)
	}
}

// TestRelay passes what it need not understand on as it is.
func TestRelay(t *testing.T) {
	var got *http.Request
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.WithoutCancel(r.Context()))
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.Header().Set("Connection", "Upgrade")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		line, _ := buffered.ReadString('\n')
		fmt.Fprint(conn, "you said "+line)
	}))
	defer echo.Close()
	target, err := url.Parse(echo.URL + "/exec/token")
	must(t, err)
	s := front(t, streams.Config{}, command(target, streams.Options{Stdout: true}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	must(t, err)
	defer conn.Close()
	// The first line of the stream comes with the request.
	fmt.Fprintf(conn, "POST /any?command=secret HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: SPDY/3.1\r\nAuthorization: Bearer t\r\nCookie: c=1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\nhello\n")
	text, err := io.ReadAll(conn)
	must(t, err)
	if !strings.HasPrefix(string(text), "HTTP/1.1 101 ") || !strings.HasSuffix(string(text), "\r\n\r\nyou said hello\n") || !strings.Contains(string(text), "Upgrade: SPDY/3.1\r\n") {
		t.Errorf("got %q", text)
	}
	h := got.Header
	if got.Method != "POST" || got.URL.String() != "/exec/token" || h.Get("Authorization") != "" || h.Get("Cookie") != "" ||
		h.Get("X-Stream-Protocol-Version") != "v4.channel.k8s.io" || h.Get("X-Forwarded-For") != "127.0.0.1" {
		t.Errorf("the runtime was asked %s %s %v", got.Method, got.URL, h)
	}
}

// TestRefusals: no redirect is followed or passed on, and errors keep their
// status.
func TestRefusals(t *testing.T) {
	secret := 0
	runtime := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/secret", http.StatusFound)
		case "/secret":
			secret++
		case "/plain":
			fmt.Fprint(w, "no stream")
		default:
			http.Error(w, "the token is gone", http.StatusNotFound)
		}
	}))
	defer runtime.Close()
	for path, want := range map[string]string{
		"/redirect": "500 invalid upgrade response: status code 302", "/plain": "500 invalid upgrade response: status code 200", "/other": "404 the token is gone",
	} {
		target, err := url.Parse(runtime.URL + path)
		must(t, err)
		for _, header := range []http.Header{
			{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}},
			{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"v5.channel.k8s.io"}},
		} {
			if got := refused(t, target, header); !strings.HasPrefix(got, want) || strings.Contains(got, "Location") {
				t.Errorf("%s with %v: %s", path, header, got)
			}
		}
	}
	if secret != 0 {
		t.Error("a redirect was followed")
	}
	nowhere := &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/"}
	if got := refused(t, nowhere, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"x"}}); !strings.HasPrefix(got, "500 error dialing backend") {
		t.Errorf("nobody listens: %s", got)
	}
	if got := refused(t, nowhere, http.Header{}); !strings.HasPrefix(got, "400 Upgrade request required") {
		t.Errorf("no upgrade: %s", got)
	}
}

func refused(t *testing.T, target *url.URL, header http.Header) string {
	t.Helper()
	s := front(t, streams.Config{Translate: true}, command(target, streams.Options{Stdout: true}))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, nil)
	must(t, err)
	req.Header = header
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return fmt.Sprintf("%d %s%v", resp.StatusCode, body, resp.Header["Location"])
}

// TestTunnel unwraps SPDY from a WebSocket, both ways.
func TestTunnel(t *testing.T) {
	back := newBackend(t, 2, func(s map[string]httpstream.Stream) string {
		line, _ := bufio.NewReader(s["data"]).ReadString('\n')
		fmt.Fprint(s["data"], "you said "+line)
		return "done"
	})
	s := front(t, streams.Config{Translate: true, IdleTimeout: time.Minute}, func(p *streams.Proxy, w http.ResponseWriter, r *http.Request) {
		p.PortForward(w, r, back.target(t))
	})
	ws := dial(t, s, "SPDY/3.1+portforward.k8s.io")
	if got := ws.Config().Protocol; len(got) != 1 || got[0] != "SPDY/3.1+portforward.k8s.io" {
		t.Errorf("agreed on %v", got)
	}
	ws.PayloadType = websocket.BinaryFrame
	conn, err := spdy.NewClientConnection(ws)
	must(t, err)
	defer conn.Close()
	errs, err := conn.CreateStream(http.Header{"streamType": {"error"}, "port": {"80"}})
	must(t, err)
	data, err := conn.CreateStream(http.Header{"streamType": {"data"}, "port": {"80"}})
	must(t, err)
	fmt.Fprint(data, "hello\n")
	text, err := io.ReadAll(data)
	must(t, err)
	status, err := io.ReadAll(errs)
	must(t, err)
	if string(text) != "you said hello\n" || string(status) != "done" {
		t.Errorf("got %q, %q", text, status)
	}
}

// TestIdle: what nothing goes over is closed; what something does stays.
func TestIdle(t *testing.T) {
	back := newBackend(t, 3, func(s map[string]httpstream.Stream) string {
		_, _ = io.Copy(s["stdout"], s["stdin"])
		return success
	})
	s := front(t, streams.Config{Translate: true, IdleTimeout: 300 * time.Millisecond}, command(back.target(t), streams.Options{Stdin: true, Stdout: true}))
	ws := dial(t, s, "v5.channel.k8s.io")
	begun := time.Now()
	var message []byte
	for time.Since(begun) < time.Second { // more than three times idle, but never so
		send(t, ws, 0, "x")
		must(t, websocket.Message.Receive(ws, &message))
	}
	begun = time.Now()
	rest(ws)
	if took := time.Since(begun); took < 200*time.Millisecond || took > 10*time.Second {
		t.Errorf("closed after %v", took)
	}
}

// TestStop: the end of the request's context ends the streams.
func TestStop(t *testing.T) {
	back := newBackend(t, 2, func(s map[string]httpstream.Stream) string {
		_, _ = io.ReadAll(s["stdout"]) // for ever
		return success
	})
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	proxy := streams.New(streams.Config{Translate: true}, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(returned)
		proxy.Command(w, r.WithContext(ctx), streams.Target{URL: back.target(t), Options: streams.Options{Stdout: true}})
	}))
	defer s.Close()
	ws := dial(t, s, "v5.channel.k8s.io")
	var message []byte
	must(t, websocket.Message.Receive(ws, &message))
	if !bytes.Equal(message, []byte{1}) {
		t.Errorf("the first message is %v, want an empty one of stdout", message)
	}
	cancel()
	<-returned
	rest(ws)
}

func TestParseOptions(t *testing.T) {
	for query, want := range map[string]streams.Options{
		"output=1": {Stdout: true}, "input=1": {Stdin: true}, "input=1&output=1&error=1": {Stdin: true, Stdout: true, Stderr: true},
		"tty=1&error=1&output=1": {Stdout: true, TTY: true},
	} {
		if got, err := streams.ParseOptions(httptest.NewRequest(http.MethodPost, "/?"+query, nil)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", query, got, err)
		}
	}
	for _, query := range []string{"", "tty=1", "tty=1&error=1", "output=true"} {
		if got, err := streams.ParseOptions(httptest.NewRequest(http.MethodPost, "/?"+query, nil)); err == nil {
			t.Errorf("%s: %+v", query, got)
		}
	}
}

// A request that can not be taken over is told what to do.
func ExampleProxy_Command() {
	proxy := streams.New(streams.Config{Translate: true}, nil)
	w := httptest.NewRecorder() // as HTTP/2 has no connection of its own
	proxy.Command(w, httptest.NewRequest(http.MethodGet, "/exec/default/web/app?output=1", nil), streams.Target{})
	fmt.Print(w.Code, " ", w.Body)
	// Output:
	// 505 streams need a connection of their own: use HTTP/1.1
}
