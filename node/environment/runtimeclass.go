package environment

import (
	"context"
	"errors"
	"fmt"

	"nodekit.dev/node/podactor"
)

// ClassGetter knows the handlers of RuntimeClass objects; the default asks the
// API server. It may block until ctx ends and is called concurrently; an error that answers
// NotFound() bool with true says that there is no such class.
type ClassGetter interface {
	RuntimeClass(ctx context.Context, class string) (handler string, err error)
}

// RuntimeClasses is a podactor.RuntimeClasses over the objects of node.k8s.io.
type RuntimeClasses struct{ classes ClassGetter }

var _ podactor.RuntimeClasses = RuntimeClasses{}

// NewRuntimeClasses makes one.
func NewRuntimeClasses(classes ClassGetter) (RuntimeClasses, error) {
	if classes == nil {
		return RuntimeClasses{}, errors.New("runtime classes: getter must not be nil")
	}
	return RuntimeClasses{classes}, nil
}

// RuntimeHandler looks a class up.
func (r RuntimeClasses) RuntimeHandler(ctx context.Context, req podactor.RuntimeHandlerRequest) (podactor.RuntimeHandlerResult, error) {
	handler, err := r.classes.RuntimeClass(ctx, req.Class)
	switch {
	case missing(err):
		return podactor.RuntimeHandlerResult{}, err
	case err != nil:
		return podactor.RuntimeHandlerResult{}, fmt.Errorf("failed to lookup RuntimeClass %s: %w", req.Class, err)
	}
	return podactor.RuntimeHandlerResult{Handler: handler}, nil
}

// RuntimeHandlers is a podactor.RuntimeClasses for nodes without an API server:
// the handler of each class by name.
type RuntimeHandlers map[string]string

var _ podactor.RuntimeClasses = RuntimeHandlers{}

// RuntimeHandler looks a class up.
func (h RuntimeHandlers) RuntimeHandler(_ context.Context, req podactor.RuntimeHandlerRequest) (podactor.RuntimeHandlerResult, error) {
	handler, known := h[req.Class]
	if !known {
		return podactor.RuntimeHandlerResult{}, fmt.Errorf("runtimeclass.node.k8s.io %q not found", req.Class)
	}
	return podactor.RuntimeHandlerResult{Handler: handler}, nil
}
