// Package reasoned gives errors a class by behaviour. A caller never imports
// the package that failed: it asks the error for Reason, RetryAfter or Fatal
// with errors.As on a small interface of its own (DESIGN.md, rule 6).
package reasoned

import (
	"errors"
	"time"
)

// Error is an error with a reason in the stock kubelet's words.
type Error struct {
	reason string
	retry  time.Duration
	fatal  bool
	err    error
}

// New wraps err with a reason such as "ErrImagePull".
func New(reason string, err error) *Error { return &Error{reason: reason, err: err} }

// After sets how long to wait before the next try; it returns e.
func (e *Error) After(d time.Duration) *Error { e.retry = d; return e }

// Final marks the error as one that trying again can not mend; it returns e.
func (e *Error) Final() *Error { e.fatal = true; return e }

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// Reason is the class in the stock kubelet's words.
func (e *Error) Reason() string { return e.reason }

// RetryAfter is how long to wait; 0 leaves it to the caller.
func (e *Error) RetryAfter() time.Duration { return e.retry }

// Fatal says that trying again can not help.
func (e *Error) Fatal() bool { return e.fatal }

// Reason asks any error for its reason; fallback where it has none.
func Reason(err error, fallback string) string {
	var r interface{ Reason() string }
	if errors.As(err, &r) && r.Reason() != "" {
		return r.Reason()
	}
	return fallback
}

// RetryAfter asks any error how long to wait; fallback where it does not say.
func RetryAfter(err error, fallback time.Duration) time.Duration {
	var r interface{ RetryAfter() time.Duration }
	if errors.As(err, &r) && r.RetryAfter() > 0 {
		return r.RetryAfter()
	}
	return fallback
}

// Fatal asks any error whether trying again is in vain.
func Fatal(err error) bool {
	var r interface{ Fatal() bool }
	return errors.As(err, &r) && r.Fatal()
}
