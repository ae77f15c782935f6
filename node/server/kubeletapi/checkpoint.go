package kubeletapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/server"
	"nodekit.dev/runtime"
)

// checkpoint writes an archive of a container that runs.
func (a *api) checkpoint(w http.ResponseWriter, r *http.Request) {
	view, found := a.named(r)
	if !found {
		http.Error(w, noPod, http.StatusNotFound)
		return
	}
	spec, known := specOf(view.Pod, r.PathValue("container"))
	if !known {
		http.Error(w, fmt.Sprintf("container %q does not exist", r.PathValue("container")), http.StatusNotFound)
		return
	}
	timeout, err := timeoutOf(r.URL.Query()["timeout"])
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	container, err := a.container(r, view, spec, known)
	var path string
	if err == nil {
		path, err = a.writeCheckpoint(r.Context(), view, container, timeout)
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("checkpointing of %s/%s/%s failed (%v)", view.Namespace, view.Name, spec.name, err), http.StatusInternalServerError)
		return
	}
	server.WriteJSON(w, map[string][]string{"items": {path}})
}

var errTimeout = errors.New("cannot parse value of timeout parameter")

// timeoutOf reads the last of the values, in seconds; none is 0.
func timeoutOf(values []string) (time.Duration, error) {
	if len(values) == 0 {
		return 0, nil
	}
	seconds, err := strconv.ParseInt(values[len(values)-1], 10, 64)
	if err != nil || seconds < 0 || seconds > int64(24*time.Hour/time.Second) {
		return 0, errTimeout
	}
	return time.Duration(seconds) * time.Second, nil
}

// writeCheckpoint names the archive by what the node knows, never by what a
// request says.
func (a *api) writeCheckpoint(ctx context.Context, view node.PodView, c runtime.Container, timeout time.Duration) (string, error) {
	if err := os.MkdirAll(a.cfg.CheckpointDir, 0o700); err != nil {
		return "", err
	}
	name := fmt.Sprintf("checkpoint-%s_%s-%s-%s.tar", view.Name, view.Namespace, c.Name, time.Now().Format(time.RFC3339))
	if name != filepath.Base(name) {
		return "", fmt.Errorf("archive name %q: must not be a path", name)
	}
	path := filepath.Join(a.cfg.CheckpointDir, name)
	return path, a.parts.Checkpointer.CheckpointContainer(ctx, runtime.CheckpointRequest{ContainerID: c.ID, Location: path, Timeout: timeout})
}

// maxBody bounds the body of a request that has a word in it, bytes.
const maxBody = 1 << 10

func readAll(r *http.Request) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	return string(data), err
}
