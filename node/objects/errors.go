package objects

import (
	"fmt"
	"time"
)

// What objects are called in errors, as the stock kubelet does.
const (
	KindSecret       = "secret"
	KindConfigMap    = "configmap"
	KindService      = "service"
	KindNode         = "node"
	KindRuntimeClass = "runtimeclass.node.k8s.io"
	KindBundle       = "clustertrustbundle.certificates.k8s.io"
)

// NotFoundError says that the API server, or whoever answers for it, has no
// object of that name.
type NotFoundError struct {
	Kind      string // in the stock kubelet's words, such as KindConfigMap
	Namespace string // empty for objects without
	Name      string
}

// Error is the stock kubelet's text, such as: configmap "x" not found.
func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %q not found", e.Kind, e.Name) }

// NotFound tells the class of the error.
func (e *NotFoundError) NotFound() bool { return true }

// UnreachableError says that nobody could tell whether the object exists and
// what it holds. Trying again may help.
type UnreachableError struct {
	Kind      string
	Namespace string
	Name      string
	Err       error // why; never nil
}

func (e *UnreachableError) Error() string {
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + e.Name
	}
	return fmt.Sprintf("failed to fetch %s %q: %v", e.Kind, name, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Unreachable tells the class of the error.
func (e *UnreachableError) Unreachable() bool { return true }

// RetryAfter leaves it to the caller when to try again.
func (e *UnreachableError) RetryAfter() time.Duration { return 0 }
