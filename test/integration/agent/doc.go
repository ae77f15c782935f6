// Package agent tests cmd/kubelet as a whole, as a process of its own, on real
// containerds: the life of pods (TestLife), kill -9 of the agent amid churn
// (TestKilled), and a runtime that goes away for a while (TestOutage).
//
// NODEKIT_SOAK=1 runs all of it on both containerds and with more rounds. It
// has only tests.
package agent
