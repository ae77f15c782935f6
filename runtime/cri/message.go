package cri

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// The stock kubelet's limits of termination messages.
const (
	maxTerminationMessage = 4096 // bytes of the file
	maxLogMessage         = 2048 // bytes of the log
	maxLogMessageLines    = 80

	// logTail is how much of a log is read for its last lines: more than the
	// longest line a runtime writes (16 KiB) and 80 short ones.
	logTail = 32 << 10
)

// terminationMessage is what an exited container left as its last words,
// after what the runtime itself has to say.
func (c *Client) terminationMessage(ctr runtime.Container, mounts []*runtimeapi.Mount) string {
	words := c.lastWords(ctr, mounts)
	switch {
	case words == "":
		return ctr.Message
	case ctr.Message == "":
		return words
	}
	return ctr.Message + ": " + words
}

// lastWords reads the termination message file, or the log where the policy
// says so and the container failed. A file that can not be read takes the
// place of the message, so that who looks for it learns why it is not there.
func (c *Client) lastWords(ctr runtime.Container, mounts []*runtimeapi.Mount) string {
	policy := corev1.TerminationMessagePolicy(ctr.Annotations[runtime.AnnotationTerminationMessagePolicy])
	fromLog := policy == corev1.TerminationMessageFallbackToLogsOnError && ctr.ExitCode != 0
	if file := hostPath(mounts, ctr.Annotations[runtime.AnnotationTerminationMessagePath]); file != "" {
		data, err := readTail(file, maxTerminationMessage)
		if err != nil && !os.IsNotExist(err) {
			return fmt.Sprintf("Error on reading termination log %s: %v", file, err)
		}
		if len(data) > 0 {
			return strings.ToValidUTF8(string(data), "\ufffd")
		}
	}
	if !fromLog || ctr.LogPath == "" {
		return ""
	}
	data, err := readTail(ctr.LogPath, logTail)
	if err != nil {
		c.log.Info("no last log lines for the termination message",
			"uid", ctr.Labels[runtime.LabelPodUID], "container", ctr.Name, "log", ctr.LogPath, "err", err)
		return ""
	}
	return lastLogLines(data)
}

// hostPath finds where a path of the container is on the host.
func hostPath(mounts []*runtimeapi.Mount, containerPath string) string {
	if containerPath == "" {
		return ""
	}
	for _, m := range mounts {
		if filepath.Clean(m.ContainerPath) == filepath.Clean(containerPath) {
			return m.HostPath
		}
	}
	return ""
}

// readTail reads the last bytes of a regular file. It follows no link and
// blocks on no pipe, because a container may have had a hand in the file.
func readTail(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	start := max(0, info.Size()-limit)
	return io.ReadAll(io.NewSectionReader(f, start, limit))
}

// lastLogLines gives the end of the text of a log in the CRI's format, from
// the end of the file: at most 80 lines and 2048 bytes.
func lastLogLines(tail []byte) string {
	lines := bytes.SplitAfter(tail, []byte("\n"))
	if len(tail) == logTail {
		lines = lines[1:] // its start is not in the tail
	}
	if n := len(lines); n > 0 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	lines = lines[max(0, len(lines)-maxLogMessageLines):]
	var text []byte
	for _, line := range lines {
		text = append(text, logText(line)...)
	}
	text = text[max(0, len(text)-maxLogMessage):]
	return strings.ToValidUTF8(string(text), "\ufffd")
}

// logText is what the container wrote of one line "time stream tag text". A
// line tagged P goes on in the next one. A line in no such form, such as one
// that was cut, says nothing.
func logText(line []byte) []byte {
	parts := bytes.SplitN(line, []byte(" "), 4)
	if len(parts) < 4 {
		return nil
	}
	tag, _, _ := bytes.Cut(parts[2], []byte(":"))
	switch string(tag) {
	case "P":
		return bytes.TrimSuffix(parts[3], []byte("\n"))
	case "F":
		return parts[3]
	}
	return nil
}
