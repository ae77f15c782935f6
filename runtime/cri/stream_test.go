package cri

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func TestStreamingAddresses(t *testing.T) {
	f := newFake()
	c := start(t, f)
	exec := runtime.ExecRequest{ContainerID: "c1", Command: []string{"sh", "-c", "a b"}, Stdin: true, Stdout: true, TTY: true}
	forward := runtime.PortForwardRequest{SandboxID: "s1", Ports: []int32{80}}
	for url, want := range map[string]string{
		"http://127.0.0.1:4000/exec/t": "", "https://[::1]:4000/x": "",
		"": "is no http or https URL", "/exec/t": "is no http or https URL", "ftp://h/x": "is no http or https URL", "http://[": "missing ']'",
	} {
		f.answer("Exec", &runtimeapi.ExecResponse{Url: url})
		f.answer("Attach", &runtimeapi.AttachResponse{Url: url})
		f.answer("PortForward", &runtimeapi.PortForwardResponse{Url: url})
		got1, err1 := c.Exec(t.Context(), exec)
		got2, err2 := c.Attach(t.Context(), exec)
		got3, err3 := c.PortForward(t.Context(), forward)
		for _, err := range []error{err1, err2, err3} {
			if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", url, err, want)
			}
		}
		if want == "" && (got1.String() != url || got2.String() != url || got3.String() != url) {
			t.Errorf("%q: got %v, %v, %v", url, got1, got2, got3)
		}
	}
	for name, want := range map[string]proto.Message{
		"Exec":        &runtimeapi.ExecRequest{ContainerId: "c1", Cmd: exec.Command, Stdin: true, Stdout: true, Tty: true},
		"Attach":      &runtimeapi.AttachRequest{ContainerId: "c1", Stdin: true, Stdout: true, Tty: true},
		"PortForward": &runtimeapi.PortForwardRequest{PodSandboxId: "s1", Port: []int32{80}},
	} {
		if got := f.requests[name]; !proto.Equal(got, want) {
			t.Errorf("%s asked for %v, want %v", name, got, want)
		}
	}
	f.answer("Exec", status.Error(codes.ResourceExhausted, "maximum number of in-flight requests exceeded"))
	var failed *Error
	if _, err := c.Exec(t.Context(), exec); !errors.As(err, &failed) || !failed.TooMany() || failed.TooLarge() {
		t.Errorf("exhausted: %v", err)
	}
}

func TestCheckpoint(t *testing.T) {
	f := newFake()
	c := start(t, f)
	req := runtime.CheckpointRequest{ContainerID: "c1", Location: "/x.tar", Timeout: 90 * time.Second}
	if err := c.CheckpointContainer(t.Context(), req); !IsUnimplemented(err) {
		t.Errorf("a runtime without it: %v", err)
	}
	f.answer("CheckpointContainer", &runtimeapi.CheckpointContainerResponse{})
	if err := c.CheckpointContainer(t.Context(), req); err != nil {
		t.Error(err)
	}
	want := &runtimeapi.CheckpointContainerRequest{ContainerId: "c1", Location: "/x.tar", Timeout: 90}
	if got := f.requests["CheckpointContainer"]; !proto.Equal(got, want) {
		t.Errorf("asked for %v, want %v", got, want)
	}
	if left := f.deadlines["CheckpointContainer"]; left <= 90*time.Second {
		t.Errorf("the call itself has %v, less than what it asks for", left)
	}
}
