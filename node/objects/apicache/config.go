package apicache

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// Config says how to answer.
type Config struct {
	// NodeName is the name of this node. Required.
	NodeName string
	// Wait bounds how long a getter waits for the first answer of the API
	// server; 0 means 5 s.
	Wait time.Duration
	// Event tells users of a pod whose certificate was refused or is not
	// renewed, a warning. It must not block; nil: nobody listens.
	Event func(pod *corev1.Pod, reason, message string)
	// NodeChanged is called when the Node object was seen to change. It must not
	// block; nil: nobody listens.
	NodeChanged func()
}

// Clients reach the API server, each one group and version of it. The cache
// closes none of them.
type Clients struct {
	// Core is v1. Required.
	Core rest.Interface
	// Node is node.k8s.io/v1, for RuntimeClasses; nil: there are none.
	Node rest.Interface
	// Certificates is certificates.k8s.io/v1, for ClusterTrustBundles and the
	// certificates of pods; nil: there are none.
	Certificates rest.Interface
}

const defaultWait = 5 * time.Second

func (c Config) complete() (Config, error) {
	if c.NodeName == "" {
		return c, errors.New("objects: NodeName must not be empty")
	}
	if c.Wait < 0 {
		return c, fmt.Errorf("objects: Wait %v is negative", c.Wait)
	}
	if c.Wait == 0 {
		c.Wait = defaultWait
	}
	return c, nil
}
