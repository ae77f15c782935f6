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
// and no container that was seen running is started again, whether its pod was
// Ready yet or not, unless the pod was told to end or is exempt.
//
// One more start is let through, and noted: that of a container that never ran,
// since its first start was cut off. containerd gives a start up when the agent
// that asked for it is killed ("context canceled"), or is killed itself; somebody
// has to start the container then, and the API counts that as a restart.
type monitor struct {
	mu     sync.Mutex
	exempt map[string]bool // namespaces
	since  map[types.UID]corev1.PodCondition
	ran    map[types.UID][]string // containers that were seen running
	cutOff []string               // starts that were made once more
	faults []string
}

func newMonitor() *monitor {
	return &monitor{exempt: map[string]bool{}, since: map[types.UID]corev1.PodCondition{}, ran: map[types.UID][]string{}}
}

// pod is the hook of a follower.
func (m *monitor) pod(c follow.Change[*corev1.Pod]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := c.New
	if c.Gone {
		delete(m.since, p.UID)
		delete(m.ran, p.UID)
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
	old := c.Old
	if !c.Known {
		old = &corev1.Pod{} // a restart may be among the first that is seen of it
	}
	m.containers(old, p, wasReady)
}

// containers looks for starts that ought not to have been.
func (m *monitor) containers(old, p *corev1.Pod, wasReady bool) {
	for _, s := range p.Status.ContainerStatuses {
		if s.RestartCount > restarts(old, s.Name) {
			m.restarted(p, s, wasReady)
		}
		if s.State.Running != nil && !slices.Contains(m.ran[p.UID], s.Name) {
			m.ran[p.UID] = append(m.ran[p.UID], s.Name)
		}
	}
}

func (m *monitor) restarted(p *corev1.Pod, s corev1.ContainerStatus, wasReady bool) {
	neverRan := false
	what := fmt.Sprintf("container %s of pod %s/%s was restarted (%d): %s", s.Name, p.Namespace, p.Name, s.RestartCount, summary(p))
	if last := s.LastTerminationState.Terminated; last != nil {
		what += fmt.Sprintf("; before: %s %d %q, started %v", last.Reason, last.ExitCode, last.Message, last.StartedAt)
		neverRan = last.StartedAt.IsZero() && !slices.Contains(m.ran[p.UID], s.Name)
	}
	if neverRan && !wasReady && s.RestartCount == 1 {
		m.cutOff = append(m.cutOff, what)
	} else {
		m.fault("%s", what)
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

// drainCutOff returns the starts that were made once more since the last call.
func (m *monitor) drainCutOff() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	again := m.cutOff
	m.cutOff = nil
	return again
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{Type: kind}
}
