package source

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/runtime"
)

// web is what a URL answers.
type web struct {
	mu      sync.Mutex
	status  int
	body    string
	etag    string
	asked   int
	notMod  int
	headers http.Header
	err     error
}

func (w *web) set(status int, body, etag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status, w.body, w.etag = status, body, etag
}

func (w *web) requests() (asked, notModified int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked, w.notMod
}

// RoundTrip makes web a transport without a network, for tests on fake time.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	w.headers = req.Header.Clone()
	if w.err != nil {
		return nil, w.err
	}
	resp := &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(w.body))}
	if w.etag != "" {
		resp.Header.Set("ETag", w.etag)
		if req.Header.Get("If-None-Match") == w.etag {
			w.notMod++
			resp.StatusCode, resp.Body = http.StatusNotModified, io.NopCloser(strings.NewReader(""))
		}
	}
	return resp, nil
}

func (w *web) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	resp, err := w.RoundTrip(req)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	for k, v := range resp.Header {
		rw.Header()[k] = v
	}
	rw.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(rw, resp.Body)
}

func podList(pods ...string) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: PodList\nitems:\n")
	for _, pod := range pods {
		b.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(pod), "\n", "\n  ") + "\n")
	}
	return b.String()
}

func newHTTP(t *testing.T, cfg HTTPConfig, told *told) *HTTP {
	t.Helper()
	cfg.NodeName = "Edge-7"
	cfg.Observer = told.observer()
	h, err := NewHTTP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHTTPOverTheNetwork(t *testing.T) {
	w := &web{status: 200, body: manifest("web", "web:1"), etag: `"1"`}
	server := httptest.NewServer(w)
	defer server.Close()
	r := run(t, newHTTP(t, HTTPConfig{URL: server.URL, Period: 5 * time.Millisecond, Header: http.Header{"X-Token": {"secret"}}}, &told{}))
	pod := r.next()["web-edge-7"]
	if pod == nil || pod.Annotations[runtime.AnnotationConfigSource] != "http" || len(pod.Spec.Tolerations) != 0 {
		t.Fatalf("pod %+v", pod)
	}
	r.quiet("unchanged answers", func() bool { _, same := w.requests(); return same > 2 })
	w.mu.Lock()
	if w.headers.Get("X-Token") != "secret" {
		t.Error("header was not sent")
	}
	w.mu.Unlock()
	w.set(200, podList(manifest("web", "web:1"), manifest("two", "t:1")), `"2"`)
	pods := r.next()
	if len(pods) != 2 || pods["web-edge-7"] != pod {
		t.Fatalf("pods %v", pods)
	}
	// The same without an ETag, told from the body.
	w.set(200, podList(manifest("two", "t:1")), "")
	if pods := r.next(); len(pods) != 1 {
		t.Fatalf("pods %v", pods)
	}
	asked, _ := w.requests()
	r.quiet("more requests", func() bool { now, _ := w.requests(); return now > asked+3 })
	w.set(200, podList(), "")
	if pods := r.next(); len(pods) != 0 {
		t.Fatalf("an empty list left %v", pods)
	}
}

// onFakeTime runs an HTTP source in a bubble and keeps its updates.
func onFakeTime(t *testing.T, w *web, test func(t *testing.T, told *told, updates *[]node.SourceUpdate)) {
	synctest.Test(t, func(t *testing.T) {
		told := &told{}
		r := run(t, newHTTP(t, HTTPConfig{URL: "http://pods.example/list", Client: &http.Client{Transport: w}}, told))
		var updates []node.SourceUpdate
		go func() {
			for {
				select {
				case u := <-r.updates:
					updates = append(updates, u)
				case <-t.Context().Done():
					return
				}
			}
		}()
		synctest.Wait()
		test(t, told, &updates)
		r.stop()
	})
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestHTTPFailuresKeepThePodsAndSlowDown(t *testing.T) {
	w := &web{status: 200, body: podList(manifest("web", "web:1"))}
	onFakeTime(t, w, func(t *testing.T, told *told, updates *[]node.SourceUpdate) {
		if len(*updates) != 1 {
			t.Fatalf("%d updates", len(*updates))
		}
		w.set(503, "", "")
		pass(20 * time.Second) // the first failure
		asked, _ := w.requests()
		for i, wait := range []int{1, 2, 4, 8, 16, 20, 20} {
			pass(time.Duration(wait)*time.Second - time.Millisecond)
			if now, _ := w.requests(); now != asked+i {
				t.Fatalf("asked too early, before %d s", wait)
			}
			pass(time.Millisecond)
			if now, _ := w.requests(); now != asked+i+1 {
				t.Fatalf("not asked after %d s", wait)
			}
		}
		if problems, _ := told.counts(); problems != 1 || !told.has(ReasonUnreachable, "Service Unavailable") {
			t.Fatalf("problems %+v", told.problems)
		}
		w.set(200, podList(manifest("web", "web:1")), "")
		pass(20 * time.Second)
		if _, mended := told.counts(); mended != 1 || len(*updates) != 1 {
			t.Fatalf("%d mended, %d updates", mended, len(*updates))
		}
	})
}

func TestHTTPSendsNothingBeforeItWasReachedOnce(t *testing.T) {
	w := &web{err: errors.New("connection refused")}
	onFakeTime(t, w, func(t *testing.T, told *told, updates *[]node.SourceUpdate) {
		pass(time.Minute)
		if len(*updates) != 0 || !told.has(ReasonUnreachable, "connection refused") {
			t.Fatalf("%d updates, problems %+v", len(*updates), told.problems)
		}
		w.mu.Lock()
		w.err, w.status, w.body = nil, 200, podList()
		w.mu.Unlock()
		pass(20 * time.Second)
		if len(*updates) != 1 || len((*updates)[0].Pods) != 0 {
			t.Fatalf("updates %v", *updates)
		}
	})
}

func TestHTTPBadAnswersAndItems(t *testing.T) {
	w := &web{status: 200, body: podList(manifest("web", "web:1"), manifest("two", "t:1"))}
	onFakeTime(t, w, func(t *testing.T, told *told, updates *[]node.SourceUpdate) {
		for words, body := range map[string]string{
			"empty":                   "",
			`kind "Service"`:          "apiVersion: v1\nkind: Service\n",
			"larger than 10 MiB":      strings.Repeat("#", MaxManifest+1),
			"mapping values":          "a: b: c",
			"cannot unmarshal string": "apiVersion: v1\nkind: PodList\nitems: many\n",
		} {
			w.set(200, body, "")
			pass(40 * time.Second)
			if !told.has(ReasonUnreachable, words) || len(*updates) != 1 {
				t.Fatalf("%s: %d updates, problems %+v", words, len(*updates), told.problems)
			}
		}
		// One bad item keeps its own pod and does not hold up the others.
		w.set(200, podList(manifest("web", `""`), manifest("two", "t:2"), manifest("two", "t:3")), "")
		pass(40 * time.Second)
		if len(*updates) != 2 {
			t.Fatalf("%d updates", len(*updates))
		}
		images := map[string]string{}
		for _, pod := range (*updates)[1].Pods {
			images[pod.Name] = pod.Spec.Containers[0].Image
		}
		if len(images) != 2 || images["web-edge-7"] != "web:1" || images["two-edge-7"] != "t:2" {
			t.Fatalf("images %v", images)
		}
		if !told.has(ReasonInvalid, "image") || !told.has(ReasonDuplicate, "default/two-edge-7") {
			t.Fatalf("problems %+v", told.problems)
		}
	})
}

func TestHTTPIsUnclearWhileAnItemWasNeverUnderstood(t *testing.T) {
	noPod := strings.Replace(manifest("web", "web:1"), "image: web:1", "image: [1]", 1)
	w := &web{status: 200, body: podList(noPod, manifest("two", "t:1"))}
	onFakeTime(t, w, func(t *testing.T, told *told, updates *[]node.SourceUpdate) {
		if u := (*updates)[0]; !u.Unclear || len(u.Pods) != 1 {
			t.Fatalf("unclear %v, pods %v", u.Unclear, byName(u))
		}
		w.set(200, podList(manifest("web", "web:1"), manifest("two", "t:1")), "")
		pass(time.Minute)
		if u := (*updates)[1]; u.Unclear || len(u.Pods) != 2 {
			t.Fatalf("mended: unclear %v, pods %v", u.Unclear, byName(u))
		}
		// The names of an item that is no pod still say whose it is.
		w.set(200, podList(manifest("two", "t:2"), noPod), "")
		pass(time.Minute)
		if u := (*updates)[2]; u.Unclear || len(u.Pods) != 2 || byName(u)["web-edge-7"] == nil {
			t.Fatalf("no pod any more: unclear %v, pods %v", u.Unclear, byName(u))
		}
	})
}

func TestNewHTTPRefuses(t *testing.T) {
	for _, url := range []string{"", "pods.example", "ftp://x", "http://", "http://x y"} {
		if _, err := NewHTTP(HTTPConfig{Config: Config{NodeName: "n"}, URL: url}); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
}
