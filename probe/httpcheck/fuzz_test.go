package httpcheck

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"nodekit.dev/probe"
)

// inMemory answers the first request with those bytes, and takes no other
// connection. What it was sent is for who waits for done.
type inMemory struct {
	answer []byte
	sent   bytes.Buffer
	done   chan struct{}
}

func (s *inMemory) checker() *Checker {
	s.done = make(chan struct{})
	first := true // a check has one connection at a time
	return New(Config{DialContext: func(context.Context, string, string) (net.Conn, error) {
		if !first {
			return nil, net.ErrClosed
		}
		first = false
		client, server := net.Pipe()
		go s.serve(server)
		return client, nil
	}})
}

func (s *inMemory) serve(conn net.Conn) {
	defer close(s.done)
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(io.TeeReader(conn, &s.sent))
	for line := ""; line != "\r\n"; {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			return
		}
	}
	_, _ = conn.Write(s.answer)
}

// FuzzAnswer: whatever a server sends, the check ends with an outcome of the
// pod's, and tells no more of it than its limit.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), false)
	f.Fuzz(func(t *testing.T, answer []byte, h2c bool) {
		s := &inMemory{answer: answer}
		got := s.checker().Check(t.Context(), Target{URL: parse(t, "http://10.0.0.7:80/x"), H2C: h2c})
		if got.Err != nil || got.Result == probe.Unknown {
			t.Fatalf("%+v", got)
		}
		if got.Result == probe.Failure && got.Output == "" {
			t.Fatal("failed without a word")
		}
		if got.Result != probe.Failure && len(got.Output) > probe.OutputLimit+len("Probe terminated redirects, Response body: ") {
			t.Fatalf("%d bytes of output", len(got.Output))
		}
	})
}

// FuzzHeaders: a pod's headers are sent as they are or not at all; no text makes
// a header that the list does not have, or a second request.
func FuzzHeaders(f *testing.F) {
	f.Add("X-A: 1\nHost: a.test\nAccept: ")
	f.Fuzz(func(t *testing.T, list string) {
		want := map[string]bool{"User-Agent": true, "Accept": true, "Connection": true}
		var own []corev1.HTTPHeader
		for line := range strings.SplitSeq(list, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			own = append(own, corev1.HTTPHeader{Name: name, Value: value})
			want[http.CanonicalHeaderKey(name)] = true
		}
		s := &inMemory{answer: []byte("HTTP/1.1 204 None\r\n\r\n")}
		got := s.checker().Check(t.Context(), Target{URL: parse(t, "http://10.0.0.7:80/x"), Headers: own})
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if got.Result != probe.Success {
			return // net/http refused them
		}
		<-s.done
		in := bufio.NewReader(&s.sent)
		req, err := http.ReadRequest(in)
		if err != nil {
			t.Skip("net/http reads less than it writes") // such as a Host with odd characters
		}
		for name := range req.Header {
			if !want[name] {
				t.Fatalf("sent %q", name)
			}
		}
		if rest, _ := io.ReadAll(in); len(rest) > 0 || req.Method != http.MethodGet || req.URL.Path != "/x" {
			t.Fatalf("sent %s %s and %q", req.Method, req.URL, rest)
		}
	})
}

// FuzzPath: no path leads to another host, or makes a URL that can not be asked.
func FuzzPath(f *testing.F) {
	f.Add("/healthz?full=1")
	f.Fuzz(func(t *testing.T, path string) {
		target, err := TargetOf(httpGet(corev1.HTTPGetAction{Port: intstr.FromString("web"), Path: path}), false)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target.URL.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if req.URL.Host != "10.0.0.7:8080" || req.URL.User != nil || !strings.HasPrefix(req.URL.RequestURI(), "/") {
			t.Fatalf("asks %s of %s", req.URL.RequestURI(), req.URL.Host)
		}
	})
}
