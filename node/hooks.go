package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// hookChain calls all hooks in order, and on the way down in reverse, as what
// was set up last depends on what was set up first. Errors and panics name the
// hook they came from.
type hookChain []Ordered[Hook]

func (c hookChain) Prepare(ctx context.Context, pod *corev1.Pod) error {
	for _, h := range c {
		if err := named("hook", h.Name, "Prepare", func() error { return h.Value.Prepare(ctx, pod) }); err != nil {
			return err
		}
	}
	return nil
}

func (c hookChain) Started(ctx context.Context, pod *corev1.Pod, container, id string) error {
	for _, h := range c {
		if err := named("hook", h.Name, "Started", func() error {
			return h.Value.Started(ctx, pod, container, id)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c hookChain) Stopping(ctx context.Context, pod *corev1.Pod) error {
	return c.down("Stopping", func(h Hook) error { return h.Stopping(ctx, pod) })
}

func (c hookChain) Cleanup(ctx context.Context, pod *corev1.Pod) error {
	return c.down("Cleanup", func(h Hook) error { return h.Cleanup(ctx, pod) })
}

// down calls all hooks, also after one failed: each has something of its own
// to take down.
func (c hookChain) down(method string, call func(Hook) error) error {
	var errs []error
	for _, h := range slices.Backward(c) {
		errs = append(errs, named("hook", h.Name, method, func() error { return call(h.Value) }))
	}
	return errors.Join(errs...)
}

// namedAdmitter says whose error or panic it was.
type namedAdmitter Ordered[Admitter]

func (a namedAdmitter) Admit(ctx context.Context, req podactor.AdmitRequest) (res lifecycle.Admission, err error) {
	err = named("admitter", a.Name, "Admit", func() error {
		res, err = a.Value.Admit(ctx, req)
		return err
	})
	return res, err
}

// named calls a vendor's method, and turns a panic into an error.
func named(kind, name, method string, call func() error) error {
	err := tasks.Contain(method, call)
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind, name, err)
	}
	return nil
}
