package cri

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func logLines(n int, text string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "2026-01-02T03:04:05.000000000Z stdout F %s%d\n", text, i)
	}
	return b.String()
}

func TestTerminationMessage(t *testing.T) {
	c, err := New(Config{Endpoint: "/unused"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		file     string
		log      string
		exit     int32
		fallback bool
		runtime  string
		want     string
	}{
		{name: "file", file: "bye", log: logLines(1, "x"), exit: 1, fallback: true, want: "bye"},
		{name: "file is long", file: strings.Repeat("a", 10) + strings.Repeat("b", 4096), want: strings.Repeat("b", 4096)},
		{name: "file is not text", file: "a\xffb", want: "a\ufffdb"},
		{name: "no fallback", log: logLines(1, "x"), exit: 1, want: ""},
		{name: "exit 0", log: logLines(1, "x"), fallback: true, want: ""},
		{name: "log", log: logLines(2, "x"), exit: 1, fallback: true, want: "x0\nx1\n"},
		{name: "partial lines", exit: 1, fallback: true, want: "one\ntwo\n",
			log: "t stdout P o\nt stdout P n\nt stdout F e\nnot a log line\nt stderr F:x two\n"},
		{name: "80 lines", log: logLines(100, ""), exit: 1, fallback: true, want: plainLines(20, 100)},
		{name: "2048 bytes", log: logLines(80, strings.Repeat("y", 100)), exit: 1, fallback: true, want: tailOf(80, strings.Repeat("y", 100))},
		{name: "one huge line", log: "t stdout F " + strings.Repeat("z", 16<<10) + "\n", exit: 1, fallback: true,
			want: strings.Repeat("z", 2047) + "\n"},
		{name: "large log", log: logLines(5000, "w"), exit: 1, fallback: true, want: tailOfRange(4920, 5000, "w")},
		{name: "runtime's words first", file: "bye", runtime: "oci failed", want: "oci failed: bye"},
		{name: "runtime's words only", runtime: "oci failed", want: "oci failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			ctr := runtime.Container{
				ExitCode: tt.exit, Message: tt.runtime, LogPath: write("log", tt.log),
				Annotations: map[string]string{runtime.AnnotationTerminationMessagePath: "/dev/termination-log/"},
			}
			if tt.fallback {
				ctr.Annotations[runtime.AnnotationTerminationMessagePolicy] = "FallbackToLogsOnError"
			}
			mounts := []*runtimeapi.Mount{
				{ContainerPath: "/etc/hosts", HostPath: "/etc/hosts"},
				{ContainerPath: "/dev/termination-log", HostPath: write("msg", tt.file)},
			}
			if got := c.terminationMessage(ctr, mounts); got != tt.want {
				t.Errorf("%d bytes %.80q; want %d bytes %.80q", len(got), got, len(tt.want), tt.want)
			}
		})
	}
}

func plainLines(from, to int) string { return tailOfRange(from, to, "") }

func tailOf(n int, text string) string { return tailOfRange(0, n, text) }

// tailOfRange is the text of log lines, as far as a message holds it.
func tailOfRange(from, to int, text string) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%s%d\n", text, i)
	}
	return b.String()[max(0, b.Len()-maxLogMessage):]
}

func TestTerminationMessageOfOddFiles(t *testing.T) {
	c, err := New(Config{Endpoint: "/unused"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", link); err != nil {
		t.Fatal(err)
	}
	ctr := runtime.Container{Annotations: map[string]string{runtime.AnnotationTerminationMessagePath: "/msg"}}
	for path, want := range map[string]string{
		fifo:                          "Error on reading termination log " + fifo,
		link:                          "Error on reading termination log " + link,
		filepath.Join(dir, "missing"): "",
	} {
		got := c.terminationMessage(ctr, []*runtimeapi.Mount{{ContainerPath: "/msg", HostPath: path}})
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("message of %s = %q, want %q", path, got, want)
		}
	}
}
