package nodelogs_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"nodekit.dev/internal/needtest"
	"nodekit.dev/node/server/nodelogs"
)

// journal is a machine whose journal knows some units.
type journal struct {
	units string
	err   error
	calls []string
}

func (j *journal) Run(_ context.Context, out io.Writer, name string, args ...string) error {
	j.calls = append(j.calls, name+" "+strings.Join(args, " "))
	if args[0] == "--field" {
		fmt.Fprint(out, j.units)
		return j.err
	}
	fmt.Fprint(out, "journal\n")
	return j.err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// machine has some logs, and secrets beside them.
func machine(t *testing.T) (dir string) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "log")
	for path, text := range map[string]string{
		"secret": "root:x", "log/kubelet.log": "kubelet says", "log/web/web.log": "web says", "log/plain": "plain says",
		"log/pods/ns_web_1/app/0.log": "app says", "log/containers/README": "",
	} {
		path = filepath.Join(base, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for link, target := range map[string]string{
		"containers/web.log": filepath.Join(dir, "pods/ns_web_1/app/0.log"), // as kubelets make them
		"relative":           "web/web.log",
		"out":                "../secret",
		"absolute":           filepath.Join(base, "secret"),
		"root":               "/",
		"twice":              "absolute",
		"up":                 "..",
		"escape.log":         filepath.Join(base, "secret"),
	} {
		must(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	return dir
}

func get(t *testing.T, cfg nodelogs.Config, run nodelogs.Runner, path string) (int, string) {
	t.Helper()
	h, err := nodelogs.New(cfg, run, nil)
	must(t, err)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// TestFiles serves what is below the directory, and nothing else whatever
// leads there.
func TestFiles(t *testing.T) {
	cfg := nodelogs.Config{Dir: machine(t)}
	for path, want := range map[string]string{
		"/logs/kubelet.log":          "200 kubelet says",
		"/logs/web/web.log":          "200 web says",
		"/logs/containers/web.log":   "200 app says",
		"/logs/relative":             "200 web says",
		"/logs/?query=x":             "200 ", // no queries here: the listing
		"/logs/":                     `200 <a href="kubelet.log">`,
		"/logs/web":                  "301 ",
		"/logs/none":                 "404 ",
		"/logs/out":                  "403 ",
		"/logs/absolute":             "403 ",
		"/logs/twice":                "403 ",
		"/logs/root/etc/passwd":      "403 ",
		"/logs/up/secret":            "403 ",
		"/logs/pipe":                 "403 ",
		"/logs/..%2fsecret":          "404 ",
		"/logs/web/..%2f..%2fsecret": "404 ",
		"/logs/%2e%2e/secret":        "404 ",
		"/logs/a%00b":                "5",
	} {
		status, body := get(t, cfg, &journal{}, path)
		if got := fmt.Sprintf("%d %s", status, body); !strings.HasPrefix(got, want) && !(strings.Contains(want, "<a") && strings.Contains(got, want[4:])) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		if strings.Contains(body, "root:x") {
			t.Errorf("%s: the secret is out", path)
		}
	}
}

// TestQueries are the journal's for units that it knows, else files.
func TestQueries(t *testing.T) {
	cfg := nodelogs.Config{Dir: machine(t), Query: true}
	for query, want := range map[string]string{
		"query=kubelet":                           "200 journal",
		"query=sshd.service":                      "200 journal",
		"query=plain":                             "200 plain says",
		"query=web":                               "200 web says",
		"query=plain&query=kubelet":               "200 journal\nplain says",
		"query=unknown":                           "200 \nlog not found for unknown",
		"query=escape":                            "200 \nerror getting log for escape",
		"query=plain&tailLines=3":                 "200 \noptions present and query resolved to log files for [plain]",
		"query=/kubelet.log":                      "200 kubelet says",
		`query=\web\web.log`:                      "200 web says",
		"query=/../secret":                        "404 ",
		"query=/absolute":                         "403 ",
		"query=/none":                             "404 ",
		"query=":                                  "400 query: Invalid value",
		"query=%20":                               "400 query: Invalid value",
		"sinceTime=x&query=a":                     `400 sinceTime: Invalid value: "x": invalid time format`,
		"untilTime=1&boot=x&tailLines=y":          "400 untilTime",
		"tailLines=3":                             "406 query: Required value: cannot be empty with options",
		"query=a%3Bb":                             "406 query: Invalid value: \"a;b\": input contains unsupported characters",
		"query=-x&query=a%0ab":                    "406 query: Invalid value: \"a\\nb\"",
		"query=" + strings.Repeat("a", 257):       "406 ",
		"query=a&query=b&query=c&query=d&query=e": "406 query: Too many: 5: must have at most 4 items",
		"query=a&query=/b":                        "406 query: Invalid value: [\"/b\" \"a\"]: cannot specify a file and service",
		"query=/a&query=/b":                       "406 query: Invalid value: [\"/a\" \"/b\"]: cannot specify more than one file",
		"query=/a&boot=0":                         "406 query: Invalid value: [\"/a\"]: cannot specify file with options",
		"query=a&boot=1":                          "406 boot: Invalid value: 1: must be less than 1",
		"query=a&tailLines=100001":                "406 tailLines: Invalid value: 100001: must be between 0 and 100000, inclusive",
		"query=a&pattern=(":                       "406 pattern: Invalid value",
		"query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z": "406 untilTime: Invalid value: 2026-01-01T00:00:00Z: must be after `sinceTime`",
	} {
		status, body := get(t, cfg, &journal{units: "kubelet.service\nsshd.service\n"}, "/logs/?"+query)
		if got := fmt.Sprintf("%d %s", status, body); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if strings.Contains(body, "root:x") {
			t.Errorf("%s: the secret is out", query)
		}
	}
	if status, body := get(t, cfg, &journal{}, "/logs/kubelet.log?query=kubelet"); status != http.StatusNotAcceptable || !strings.Contains(body, "path not allowed in query mode") {
		t.Errorf("a path and a query: %d %q", status, body)
	}
	if status, body := get(t, cfg, &journal{}, "/logs/kubelet.log"); status != http.StatusOK || body != "kubelet says" {
		t.Errorf("a file without a query: %d %q", status, body)
	}
	if _, body := get(t, cfg, &journal{err: errors.New("no journalctl here")}, "/logs/?query=kubelet"); body != "kubelet says" {
		t.Errorf("without a journal: %q", body)
	}
}

// TestJournalArguments: each value stays one word with its option.
func TestJournalArguments(t *testing.T) {
	j := &journal{units: "kubelet.service\n"}
	get(t, nodelogs.Config{Dir: t.TempDir(), Query: true}, j,
		"/logs/?query=kubelet&boot=-1&tailLines=5&pattern=--output%3Dcat+x&sinceTime=2026-01-02T03:04:05%2B01:00&untilTime=2026-01-02T03:04:06Z")
	want := "journalctl --utc --no-pager --output=short-precise --since=2026-01-02 02:04:05 UTC --until=2026-01-02 03:04:06 UTC" +
		" --lines=5 --unit=kubelet --grep=--output=cat x --boot=-1"
	if got := j.calls[len(j.calls)-1]; got != want {
		t.Errorf("it ran\n%s\nwant\n%s", got, want)
	}
}

func TestPacked(t *testing.T) {
	h, err := nodelogs.New(nodelogs.Config{Dir: machine(t), Query: true}, &journal{}, nil)
	must(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/logs/?query=plain", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	unpacked, err := gzip.NewReader(w.Body)
	must(t, err)
	if text, err := io.ReadAll(unpacked); string(text) != "plain says" || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("%q, %v, %v", text, err, w.Header())
	}
}

// TestRealJournal asks the machine's own, where there is one.
func TestRealJournal(t *testing.T) {
	if _, err := exec.LookPath("journalctl"); err != nil {
		needtest.SkipOrFail(t, "needs journalctl: "+err.Error())
	}
	status, body := get(t, nodelogs.Config{Dir: t.TempDir(), Query: true}, nodelogs.Commands(),
		"/logs/?query=no-such-unit&tailLines=1&sinceTime=2026-01-02T03:04:05Z&untilTime=2026-01-02T03:04:06Z")
	if status != http.StatusOK || !strings.Contains(body, "options present and query resolved to log files for [no-such-unit]") {
		t.Errorf("%d %q", status, body)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := nodelogs.New(nodelogs.Config{Dir: "x"}, nil, nil); err == nil || !strings.Contains(err.Error(), `Dir "x": must be an absolute path`) {
		t.Error(err)
	}
}

func ExampleNew() {
	dir, err := os.MkdirTemp("", "log")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "kubelet.log"), []byte("started\n"), 0o600)
	logs, err := nodelogs.New(nodelogs.Config{Dir: dir, Query: true}, nodelogs.Commands(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	w := httptest.NewRecorder()
	logs.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/logs/?query=/kubelet.log", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output:
	// 200 started
}
