package scenarios

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/test/cluster/follow"
)

// monitor sees every change of every pod and node, and notes what must not
// happen to them: a pod that was Ready stays so, with the same transition time,
// and no container that was up is started again, unless the pod was told to end
// or is exempt. (A kill in the middle of a container's start may cut that off.)
type monitor struct {
	mu     sync.Mutex
	exempt map[string]bool // namespaces
	since  map[types.UID]corev1.PodCondition
	faults []string
}

func newMonitor() *monitor {
	return &monitor{exempt: map[string]bool{}, since: map[types.UID]corev1.PodCondition{}}
}

// pod is the hook of a follower.
func (m *monitor) pod(c follow.Change[*corev1.Pod]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := c.New
	if c.Gone {
		delete(m.since, p.UID)
		return
	}
	if p.DeletionTimestamp != nil || m.exempt[p.Namespace] || p.Status.Phase == corev1.PodSucceeded {
		return
	}
	now := podCondition(p, corev1.PodReady)
	was, wasReady := m.since[p.UID]
	switch {
	case wasReady && now.Status != corev1.ConditionTrue:
		m.fault("pod %s/%s was Ready and is %q: %s: %s: %s", p.Namespace, p.Name, now.Status, now.Reason, now.Message, summary(p))
	case wasReady && !now.LastTransitionTime.Equal(&was.LastTransitionTime):
		m.fault("pod %s/%s was Ready since %v and is Ready since %v", p.Namespace, p.Name, was.LastTransitionTime, now.LastTransitionTime)
	}
	if now.Status == corev1.ConditionTrue {
		m.since[p.UID] = now
	} else {
		delete(m.since, p.UID)
	}
	for _, s := range p.Status.ContainerStatuses {
		if wasReady && restarts(c.Old, s.Name) < s.RestartCount {
			m.fault("container %s of pod %s/%s was restarted (%d): %s", s.Name, p.Namespace, p.Name, s.RestartCount, summary(p))
		}
	}
}

func restarts(p *corev1.Pod, container string) int32 {
	i := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if i < 0 {
		return 0
	}
	return p.Status.ContainerStatuses[i].RestartCount
}

// node is the hook of a follower.
func (m *monitor) node(c follow.Change[*corev1.Node]) {
	if !c.Known || c.Gone {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, now := nodeCondition(c.Old, corev1.NodeReady), nodeCondition(c.New, corev1.NodeReady)
	if was.Status == corev1.ConditionTrue && now.Status != corev1.ConditionTrue {
		m.fault("node %s was Ready and is %q: %s: %s", c.New.Name, now.Status, now.Reason, now.Message)
	}
}

func (m *monitor) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// exceptIn leaves a namespace out: what runs there is meant to fail.
func (m *monitor) exceptIn(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.exempt[namespace] = true
}

// drain returns what was noted since the last call.
func (m *monitor) drain() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	faults := m.faults
	m.faults = nil
	return faults
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{Type: kind}
}
