package objects

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

// Config says how to answer.
type Config struct {
	// NodeName is the name of this node. Required.
	NodeName string
	// Wait bounds how long a getter waits for the first answer of the API
	// server; 0 means 5 s.
	Wait time.Duration
}

// Clients reach the API server, each one group and version of it. The cache
// closes none of them.
type Clients struct {
	// Core is v1. Required.
	Core rest.Interface
	// Node is node.k8s.io/v1, for RuntimeClasses; nil: there are none.
	Node rest.Interface
	// Certificates is certificates.k8s.io/v1, for ClusterTrustBundles; nil:
	// there are none.
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
