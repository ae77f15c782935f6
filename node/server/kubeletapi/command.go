package kubeletapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"nodekit.dev/node"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/streams"
	"nodekit.dev/runtime"
)

const noPod = "pod does not exist"

// exec runs a command in a container and connects the client to it.
func (a *api) exec(w http.ResponseWriter, r *http.Request) {
	a.command(w, r, "exec", func(c runtime.Container, o streams.Options) (*url.URL, error) {
		return a.parts.Runtime.Exec(r.Context(), runtime.ExecRequest{
			ContainerID: c.ID, Command: r.URL.Query()["command"],
			Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY,
		})
	})
}

// attach connects the client to what runs in a container. Whether that has a
// terminal was decided when the container was made.
func (a *api) attach(w http.ResponseWriter, r *http.Request) {
	a.command(w, r, "attach", func(c runtime.Container, o streams.Options) (*url.URL, error) {
		return a.parts.Runtime.Attach(r.Context(), runtime.ExecRequest{
			ContainerID: c.ID, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, TTY: o.TTY,
		})
	})
}

// command is what exec and attach have in common.
func (a *api) command(w http.ResponseWriter, r *http.Request, subresource string, ask func(runtime.Container, streams.Options) (*url.URL, error)) {
	options, err := streams.ParseOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	view, found := a.named(r)
	if !found {
		http.Error(w, noPod, http.StatusNotFound)
		return
	}
	spec, known := specOf(view.Pod, r.PathValue("container"))
	container, err := a.container(r, view, spec, known)
	if err != nil {
		writeRuntimeError(w, err)
		return
	}
	if subresource == "attach" {
		options.TTY = spec.tty
		options.Stderr = options.Stderr && !spec.tty
	}
	target, err := ask(container, options)
	if err != nil {
		writeRuntimeError(w, err)
		return
	}
	a.streams.Command(w, r, streams.Target{URL: target, Options: options, Subresource: subresource})
}

// container is the one of the pod that the path names, and that runs.
func (a *api) container(r *http.Request, view node.PodView, spec containerSpec, known bool) (runtime.Container, error) {
	if !known {
		return runtime.Container{}, fmt.Errorf("container not found (%q)", r.PathValue("container"))
	}
	seen, err := a.parts.Runtime.LookPod(r.Context(), view.UID)
	if err != nil {
		return runtime.Container{}, err
	}
	return running(seen, spec.name)
}

// run runs a command and answers with all that it said.
func (a *api) run(w http.ResponseWriter, r *http.Request) {
	view, found := a.named(r)
	if !found {
		http.Error(w, noPod, http.StatusNotFound)
		return
	}
	spec, known := specOf(view.Pod, r.PathValue("container"))
	container, err := a.container(r, view, spec, known)
	if err != nil {
		writeRuntimeError(w, err)
		return
	}
	command := strings.Split(r.FormValue("cmd"), " ")
	got, err := a.parts.Commands.RunCommand(r.Context(), container.ID, command)
	if err == nil && got.ExitCode != 0 {
		err = fmt.Errorf("command '%s' exited with %d: %s", strings.Join(command, " "), got.ExitCode, got.Stderr)
	}
	if err != nil {
		writeRuntimeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(got.Stdout, got.Stderr...)) // the client is gone: nobody to tell
}

// portForward connects the client to ports of a pod's network. Over SPDY the
// client names them later, over older WebSocket protocols at once.
func (a *api) portForward(w http.ResponseWriter, r *http.Request) {
	var ports []int32
	if streams.WebSocket(r) && !a.streams.Tunnelled(r) {
		var err error
		if ports, err = portsOf(r.URL.Query()["port"]); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	view, found := a.named(r)
	if !found {
		http.Error(w, noPod, http.StatusNotFound)
		return
	}
	seen, err := a.parts.Runtime.LookPod(r.Context(), view.UID)
	if err != nil {
		writeRuntimeError(w, err)
		return
	}
	sandbox, found := seen.NewestSandbox()
	if !found || !sandbox.Ready {
		writeRuntimeError(w, fmt.Errorf("pod not found (%q)", view.Name+"_"+view.Namespace))
		return
	}
	target, err := a.parts.Runtime.PortForward(r.Context(), runtime.PortForwardRequest{SandboxID: sandbox.ID, Ports: ports})
	if err != nil {
		writeRuntimeError(w, err)
		return
	}
	a.streams.PortForward(w, r, target)
}

// portsOf reads ports, of which one parameter may list several.
func portsOf(values []string) (ports []int32, err error) {
	if len(values) == 0 {
		return nil, fmt.Errorf("query parameter %q is required", "port")
	}
	for _, list := range values {
		for text := range strings.SplitSeq(list, ",") {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil || port == 0 {
				return nil, fmt.Errorf("unable to parse %q as a port", list)
			}
			ports = append(ports, int32(port))
		}
	}
	return ports, nil
}

// setVerbosity is PUT /debug/flags/v.
func (a *api) setVerbosity(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		http.Error(w, "unsupported http method", http.StatusNotAcceptable)
		return
	}
	level, err := readAll(r)
	if err != nil {
		http.Error(w, "error reading request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	said, err := a.parts.SetVerbosity(level)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	server.WriteText(w, said+"\n")
}
