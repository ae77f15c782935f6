package kubeletapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// containerLogs writes the log of a container, and what is added to it.
func (a *api) containerLogs(w http.ResponseWriter, r *http.Request) {
	options, err := logOptionsOf(r.URL.Query())
	if err != nil {
		http.Error(w, `{"message": "Unable to decode query."}`, http.StatusBadRequest)
		return
	}
	if err := options.validate(); err != nil {
		http.Error(w, `{"message": "Invalid request."}`, http.StatusUnprocessableEntity)
		return
	}
	view, found := a.named(r)
	if !found {
		http.Error(w, fmt.Sprintf("pod %q does not exist", r.PathValue("pod")), http.StatusNotFound)
		return
	}
	spec, known := specOf(view.Pod, r.PathValue("container"))
	if !known {
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", r.PathValue("container"), view.Name), http.StatusNotFound)
		return
	}
	if !a.cfg.SplitLogStreams && options.stream != "" {
		http.Error(w, fmt.Sprintf("unable to return the given log stream: %q. Please enable PodLogsQuerySplitStreams feature gate in kubelet", options.stream), http.StatusBadRequest)
		return
	}
	out := &flushing{ResponseWriter: w, control: http.NewResponseController(w)}
	err = a.copyLog(r, out, logOf{view, spec.name}, options)
	switch {
	case err == nil || r.Context().Err() != nil: // then the client has what it wanted
	case out.begun: // too late for a status: the client sees the words
		fmt.Fprintln(out, err)
	default:
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// logOf names a container.
type logOf struct {
	view      node.PodView
	container string
}

func (a *api) copyLog(r *http.Request, out *flushing, of logOf, o logOptions) error {
	view := of.view
	id, err := loggedContainer(view, of.container, o.previous)
	if err != nil {
		return err
	}
	ended, forget := a.parts.Ends.watch(view.UID, id, o.follow)
	defer forget()
	seen, err := a.parts.Runtime.LookPod(r.Context(), view.UID)
	if err != nil {
		return err
	}
	path, runs, err := logPath(seen, id)
	if err != nil {
		return err
	}
	if !runs {
		ended = closed()
	}
	return a.parts.Logs.CopyLog(r.Context(), LogRequest{
		Path: path, Within: a.cfg.PodLogsDir, Since: o.since(time.Now()), Tail: o.tail, LimitBytes: o.limit,
		Timestamps: o.timestamps, Follow: o.follow, Ended: ended, Stream: streamNames()[o.stream], Out: out, Opened: out.begin,
	})
}

// flushing writes each line at once.
type flushing struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

// begin tells the client that there is a log, even while that is empty.
func (f *flushing) begin() {
	f.begun = true
	f.Header().Set("Content-Type", "text/plain")
	f.WriteHeader(http.StatusOK)
	_ = f.control.Flush() // whoever can not flush gets it all later
}

func (f *flushing) Write(data []byte) (int, error) {
	n, err := f.ResponseWriter.Write(data)
	_ = f.control.Flush()
	return n, err
}

// logOptions are the PodLogOptions of a query.
type logOptions struct {
	follow, previous, timestamps bool
	sinceSeconds                 *int64
	sinceTime                    time.Time
	tail, limit                  *int64
	stream                       string // as the API spells it; empty: both
}

// streamNames are the API's names of streams, in the runtime's spelling.
func streamNames() map[string]string {
	return map[string]string{"": "", corev1.LogStreamAll: "", corev1.LogStreamStdout: "stdout", corev1.LogStreamStderr: "stderr"}
}

func logOptionsOf(query url.Values) (logOptions, error) {
	o := logOptions{follow: flag(query, "follow"), previous: flag(query, "previous"), timestamps: flag(query, "timestamps")}
	tail := "tailLines"
	if old := query.Get("tail"); old != "" { // what clients said before v1
		tail = "tail"
		if old == "all" {
			tail = ""
		}
	}
	var errs []error
	for name, into := range map[string]**int64{"sinceSeconds": &o.sinceSeconds, tail: &o.tail, "limitBytes": &o.limit} {
		if !query.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(query.Get(name), 10, 64)
		errs = append(errs, err)
		*into = &n
	}
	if at := query.Get("sinceTime"); at != "" && at != "null" {
		var err error
		o.sinceTime, err = time.Parse(time.RFC3339, at)
		errs = append(errs, err)
	}
	if o.stream = query.Get("stream"); o.stream == corev1.LogStreamAll {
		o.stream = ""
	}
	return o, errors.Join(errs...)
}

// flag is false where it is not named, "0" or "false", and true else.
func flag(query url.Values, name string) bool {
	value := query.Get(name)
	return query.Has(name) && value != "0" && !strings.EqualFold(value, "false")
}

func (o logOptions) validate() error {
	switch {
	case o.tail != nil && *o.tail < 0,
		o.limit != nil && *o.limit < 1,
		o.sinceSeconds != nil && *o.sinceSeconds < 1,
		o.sinceSeconds != nil && !o.sinceTime.IsZero(),
		o.stream != "" && o.tail != nil:
		return errors.New("invalid log options")
	}
	if _, known := streamNames()[o.stream]; !known {
		return errors.New("no such stream")
	}
	return nil
}

// since is the time from which lines are wanted; zero: all.
func (o logOptions) since(now time.Time) time.Time {
	if o.sinceSeconds != nil {
		return now.Add(-lifecycle.Seconds(*o.sinceSeconds))
	}
	return o.sinceTime
}
