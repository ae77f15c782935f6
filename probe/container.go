package probe

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Container is one run of a container, with its probes.
type Container struct {
	// UID and Name say which container of which pod it is, ID which run of it.
	Namespace, Pod, UID, Name, ID string
	// Workload, Host and Ports are those of [Target].
	Workload string
	Host     string
	Ports    []corev1.ContainerPort
	// StartedAt is when this run began; zero: when it is first watched.
	StartedAt time.Time
	// WasStarted and WasReady are what was told of this run before it was first
	// watched, by an agent before this one. They hold until a check says
	// otherwise; what was restored of the run goes before them.
	WasStarted, WasReady bool
	// A probe that the container does not have is nil.
	Liveness, Readiness, Startup *Spec
}

// spec is the probe of one type.
func (c *Container) spec(t Type) *Spec {
	switch t {
	case Liveness:
		return c.Liveness
	case Readiness:
		return c.Readiness
	case Startup:
		return c.Startup
	}
	return nil
}

// types are all of them, in the order in which a run holds its probes.
func types() [3]Type { return [3]Type{Liveness, Readiness, Startup} }

// State is what the probes say of one run of a container.
type State struct {
	Namespace, Pod, UID    string
	Container, ContainerID string
	// Started is nil without a startup probe; once true it stays so.
	Started *bool
	// Ready is nil without a readiness probe.
	Ready *bool
	// Unhealthy: liveness or startup reached its failure threshold, and the run
	// is to be ended. It is not checked any more.
	Unhealthy bool
	// Message is the output of the check that brought this state; empty at first.
	Message string
	// Failed is Liveness or Startup, and Grace that probe's own (nil: the pod's),
	// where Unhealthy is set.
	Failed Type
	Grace  *time.Duration
}
