package wire

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
)

// LogLinks is a hook that keeps a link per container in dir, named
// POD_NAMESPACE_CONTAINER-ID.log, to the container's log. Log collectors read
// pod and container from that name.
//
// It never fails: a pod is worth more than a link to its log. What goes wrong
// is logged once per kind, such as that the disk is full.
func LogLinks(dir, podLogsDir string, log *slog.Logger) node.Hook {
	return &logLinks{dir: dir, podLogsDir: podLogsDir, log: log, warned: map[string]bool{}}
}

type logLinks struct {
	node.NoHook
	dir        string
	podLogsDir string
	log        *slog.Logger

	mu     sync.Mutex
	warned map[string]bool // kinds of failure
}

// Started links the container's log, and drops the pod's links whose log is gone.
func (l *logLinks) Started(_ context.Context, pod *corev1.Pod, container, id string) error {
	l.warn("link", pod, l.link(pod, container, id))
	l.warn("sweep", pod, l.sweep(pod))
	return nil
}

// Cleanup drops what is left of the pod's links.
func (l *logLinks) Cleanup(_ context.Context, pod *corev1.Pod) error {
	l.warn("sweep", pod, l.sweep(pod))
	return nil
}

// warn logs one failure of each kind: of a step, for a reason.
func (l *logLinks) warn(step string, pod *corev1.Pod, err error) {
	if err == nil {
		return
	}
	kind := step + ": " + err.Error()
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		kind = step + ": " + errno.Error()
	}
	l.mu.Lock()
	known := l.warned[kind]
	l.warned[kind] = true
	l.mu.Unlock()
	if !known {
		l.log.Warn("links to container logs are not kept; more failures of this kind are not logged",
			"step", step, "dir", l.dir, "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "err", err)
	}
}

func (l *logLinks) link(pod *corev1.Pod, container, id string) error {
	log, err := newestLog(filepath.Join(podLogDir(l.podLogsDir, pod.Namespace, pod.Name, string(pod.UID)), container))
	if err != nil || log == "" {
		return err
	}
	if err := os.MkdirAll(l.dir, 0o755); err != nil { //nolint:gosec // log collectors that are not root read it
		return err
	}
	return replaceLink(log, filepath.Join(l.dir, linkName(pod.Namespace, pod.Name, container, bareID(id))))
}

// newestLog is the log of the newest start in a container's log folder, "" if
// the runtime wrote none. Asking the runtime would cost a call per start.
func newestLog(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", ignoreMissing(err)
	}
	newest, at := "", -1
	for _, e := range entries {
		stem, isLog := strings.CutSuffix(e.Name(), ".log")
		if n, err := strconv.Atoi(stem); isLog && err == nil && n > at {
			newest, at = filepath.Join(dir, e.Name()), n
		}
	}
	return newest, nil
}

// podLogDir is where the runtime puts the logs of a pod: the stock layout.
func podLogDir(podLogsDir, namespace, name, uid string) string {
	return filepath.Join(podLogsDir, namespace+"_"+name+"_"+uid)
}

// sweep removes the pod's links that lead nowhere.
func (l *logLinks) sweep(pod *corev1.Pod) error {
	links, err := filepath.Glob(filepath.Join(l.dir, linkPrefix(pod.Namespace, pod.Name)+"*.log"))
	if err != nil {
		return err
	}
	var errs []error
	for _, link := range links {
		if _, err := os.Stat(link); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, ignoreMissing(os.Remove(link)))
		}
	}
	return errors.Join(errs...)
}

func linkPrefix(namespace, name string) string { return name + "_" + namespace + "_" }

func linkName(namespace, name, container, bareID string) string {
	return linkPrefix(namespace, name) + container + "-" + bareID + ".log"
}

// bareID is the container's ID without a "containerd://" in front.
func bareID(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}

func replaceLink(target, link string) error {
	if old, err := os.Readlink(link); err == nil && old == target {
		return nil
	}
	if err := ignoreMissing(os.Remove(link)); err != nil {
		return err
	}
	return os.Symlink(target, link)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
