package admission

import (
	"context"
	"sync"
	"time"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// ports refuses pods that want a host port which another pod has. Pods are
// admitted side by side, so that it keeps who was let through.
type ports struct {
	pods Pods

	mu      sync.Mutex
	granted map[string]bool // by UID: may not be seen to run yet
}

func newPorts(pods Pods) *ports { return &ports{pods: pods, granted: map[string]bool{}} }

func (a *ports) Admit(_ context.Context, req node.AdmitRequest) (lifecycle.Admission, error) {
	mine := hostPorts(req.Pod)
	if len(mine) == 0 {
		return admit(), nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.pods.Pods()
	a.forget(all)
	verdict := decide(portsInput{now: time.Now(), pod: req.Pod, pods: all, granted: a.granted})
	if verdict.Verdict == lifecycle.VerdictAdmit {
		a.granted[string(req.Pod.UID)] = true
	}
	return verdict, nil
}

// forget drops those that have gone.
func (a *ports) forget(all []node.PodView) {
	here := make(map[string]bool, len(a.granted))
	for _, v := range all {
		if a.granted[v.UID] && !v.Released {
			here[v.UID] = true
		}
	}
	a.granted = here
}
