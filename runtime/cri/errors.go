package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is a call that failed. Its class is told by methods, so that callers
// can ask with errors.As on a small interface of their own.
type Error struct {
	Op     string // the CRI call, e.g. "StopContainer"
	Object string // what it was about: an ID, a name or an image
	err    error
}

// wrap names the call and its object; nil stays nil.
func wrap(op, object string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Object: object, err: err}
}

func (e *Error) Error() string {
	what := e.Op
	if e.Object != "" {
		what = fmt.Sprintf("%s %q", e.Op, e.Object)
	}
	if e.TooLarge() {
		return fmt.Sprintf("%s: the runtime's answer is larger than the %d bytes that a CRI message may have: %v", what, maxMessage, e.err)
	}
	return fmt.Sprintf("%s: %v", what, e.err)
}

func (e *Error) Unwrap() error { return e.err }

// Is lets errors.Is find the context's errors, which gRPC hides in a code.
func (e *Error) Is(target error) bool {
	switch target {
	case context.Canceled:
		return e.code() == codes.Canceled
	case context.DeadlineExceeded:
		return e.code() == codes.DeadlineExceeded
	}
	return false
}

// Message is the runtime's own words, without the call and the code.
func (e *Error) Message() string {
	if s, ok := status.FromError(e.err); ok {
		return s.Message()
	}
	return e.err.Error()
}

// Reason is the stock kubelet's word for a failure of this call, as a
// container's waiting reason or an event shows it; empty where there is none.
func (e *Error) Reason() string {
	switch e.Op {
	case opRunSandbox:
		return "FailedCreatePodSandBox"
	case opCreateContainer:
		return "CreateContainerError"
	case opStartContainer:
		return "RunContainerError"
	case opStopContainer:
		return "KillContainerError"
	case opStopSandbox, opRemoveSandbox:
		return "FailedKillPod"
	}
	return ""
}

// NotFound says that the runtime does not know the object.
func (e *Error) NotFound() bool { return e.code() == codes.NotFound }

// Unavailable says that the runtime could not be reached, or went away.
func (e *Error) Unavailable() bool { return e.code() == codes.Unavailable }

// Timeout says that the call took longer than it may.
func (e *Error) Timeout() bool { return e.code() == codes.DeadlineExceeded }

// Unimplemented says that the runtime has no such call.
func (e *Error) Unimplemented() bool { return e.code() == codes.Unimplemented }

// TooLarge says that the answer was larger than a CRI message may be.
func (e *Error) TooLarge() bool {
	return e.code() == codes.ResourceExhausted && strings.Contains(e.err.Error(), "larger than max")
}

// TooMany says that the runtime has too much to do, such as more exec sessions
// that nobody has connected to than it keeps: later it may work.
func (e *Error) TooMany() bool { return e.code() == codes.ResourceExhausted && !e.TooLarge() }

func (e *Error) code() codes.Code { return status.Code(e.err) }

// IsNotFound says that an error of this package is about an unknown object.
func IsNotFound(err error) bool { return is(err, (*Error).NotFound) }

// IsUnavailable says that the runtime could not be reached.
func IsUnavailable(err error) bool { return is(err, (*Error).Unavailable) }

// IsTimeout says that the call took longer than it may.
func IsTimeout(err error) bool { return is(err, (*Error).Timeout) }

// IsUnimplemented says that the runtime has no such call.
func IsUnimplemented(err error) bool { return is(err, (*Error).Unimplemented) }

func is(err error, class func(*Error) bool) bool {
	var e *Error
	return errors.As(err, &e) && class(e)
}

// unlessNotFound is for calls that make something go away: what is not there
// has gone.
func unlessNotFound(err error) error {
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}
