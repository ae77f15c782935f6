package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestErrorClasses(t *testing.T) {
	for _, tt := range []struct {
		code codes.Code
		is   func(error) bool
	}{
		{codes.NotFound, IsNotFound},
		{codes.Unavailable, IsUnavailable},
		{codes.DeadlineExceeded, IsTimeout},
		{codes.Unimplemented, IsUnimplemented},
	} {
		err := fmt.Errorf("outer: %w", wrap("Call", "x", status.Error(tt.code, "words")))
		if !tt.is(err) {
			t.Errorf("%v is not of its class", err)
		}
		if other := wrap("Call", "x", status.Error(codes.Internal, "words")); tt.is(other) {
			t.Errorf("%v is of the class of %v", other, tt.code)
		}
	}
	if !errors.Is(wrap("Call", "", status.Error(codes.Canceled, "")), context.Canceled) {
		t.Error("a cancelled call is not context.Canceled")
	}
	if !errors.Is(wrap("Call", "", status.Error(codes.DeadlineExceeded, "")), context.DeadlineExceeded) {
		t.Error("a call that took too long is not context.DeadlineExceeded")
	}
}

func TestErrorWords(t *testing.T) {
	err := wrap(opStartContainer, "c1", status.Error(codes.Unknown, "exec: no such file"))
	if got, want := err.Error(), `StartContainer "c1": rpc error: code = Unknown desc = exec: no such file`; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	var e *Error
	if !errors.As(err, &e) || e.Message() != "exec: no such file" {
		t.Errorf("Message() = %q", e.Message())
	}
	for op, want := range map[string]string{
		opRunSandbox: "FailedCreatePodSandBox", opCreateContainer: "CreateContainerError", opStartContainer: "RunContainerError",
		opStopContainer: "KillContainerError", opStopSandbox: "FailedKillPod", "ListImages": "",
	} {
		if got := (&Error{Op: op}).Reason(); got != want {
			t.Errorf("Reason of %s = %q, want %q", op, got, want)
		}
	}
}

func TestGoneIsGone(t *testing.T) {
	f := newFake()
	c := start(t, f)
	ctx := t.Context()
	calls := map[string]func() error{
		"StopContainer":    func() error { return c.StopContainer(ctx, "x", 0) },
		"RemoveContainer":  func() error { return c.RemoveContainer(ctx, "x") },
		"StopPodSandbox":   func() error { return c.StopSandbox(ctx, "x") },
		"RemovePodSandbox": func() error { return c.RemoveSandbox(ctx, "x") },
	}
	for method, call := range calls {
		f.answer(method, status.Error(codes.NotFound, "no such thing"))
		if err := call(); err != nil {
			t.Errorf("%s of what is not there: %v", method, err)
		}
		f.answer(method, status.Error(codes.Internal, "broken"))
		if err := call(); err == nil || IsNotFound(err) {
			t.Errorf("%s that failed: %v", method, err)
		}
	}
	f.answer("StartContainer", status.Error(codes.NotFound, "no such thing"))
	if err := c.StartContainer(ctx, "x"); !IsNotFound(err) {
		t.Errorf("StartContainer of what is not there: %v", err)
	}
}

func TestAnswerTooLarge(t *testing.T) {
	f := newFake()
	f.answer("ExecSync", &runtimeapi.ExecSyncResponse{Stdout: bytes.Repeat([]byte("x"), maxMessage+1)})
	c := start(t, f)
	_, err := c.ExecSync(t.Context(), "c", []string{"x"}, 0)
	if err == nil || !strings.Contains(err.Error(), "larger than the 16777216 bytes that a CRI message may have") {
		t.Errorf("ExecSync = %v", err)
	}
	f.answer("ExecSync", &runtimeapi.ExecSyncResponse{Stdout: bytes.Repeat([]byte("x"), maxMessage-100), ExitCode: 3})
	if r, err := c.ExecSync(t.Context(), "c", []string{"x"}, 0); err != nil || len(r.Stdout) != maxMessage-100 || r.ExitCode != 3 {
		t.Errorf("ExecSync of the largest answer: %d bytes, exit %d, %v", len(r.Stdout), r.ExitCode, err)
	}
}

func TestMadeThingsMustHaveAnID(t *testing.T) {
	f := newFake()
	f.answer("RunPodSandbox", &runtimeapi.RunPodSandboxResponse{})
	c := start(t, f)
	if id, err := c.RunSandbox(t.Context(), plainSandbox()); !errors.Is(err, errNoID) {
		t.Errorf("RunSandbox = %q, %v", id, err)
	}
}
