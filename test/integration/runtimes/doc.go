// Package runtimes holds real containerds against the contract that the agent
// relies on (runtimetest.Suite), through the agent's own client and observer.
// It has only tests.
package runtimes
