package sim

import (
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// checkFinished holds that a pod that is to leave nothing left nothing.
func (a *agent) checkFinished() {
	if a.inc.held {
		return // what there is belongs to the one before
	}
	if len(a.w.containers)+len(a.w.sandboxes) > 0 {
		for _, c := range a.w.containers {
			a.l.must(c.hidden(a.l.now), "finished leaves nothing", "container %s", c.ID)
		}
		for _, s := range a.w.sandboxes {
			a.l.must(s.hidden(a.l.now), "finished leaves nothing", "sandbox %s", s.ID)
		}
	}
	a.l.must(len(a.w.mounted) == 0 && !a.w.cgroup && !a.w.dirs, "finished leaves nothing", "%s", a.w.left())
}

// checkSettled holds, long after all healed, that each pod is where it should be.
func (l *life) checkSettled() {
	for _, inc := range l.incs {
		switch {
		case inc.gone:
			l.must(inc.w.empty() || l.tended(inc.w) || l.onlyZombies(inc.w), "finished leaves nothing", "%s left %s", inc.name, inc.w.left())
		case inc.held:
		case inc.agent.mem.Ending == nil:
			l.checkRuns(inc)
		default:
			l.checkEnded(inc)
		}
	}
}

// onlyZombies says that all that is left came from calls of dead agents: the
// next relist finds it.
func (l *life) onlyZombies(w *world) bool {
	for _, s := range w.sandboxes {
		if !s.zombie {
			return false
		}
	}
	return len(w.sandboxes) > 0 && len(w.mounted) == 0
}

// checkRuns holds that all that should run does.
func (l *life) checkRuns(inc *incarnation) {
	a, w := inc.agent, inc.w
	phase := a.mem.Phase
	l.must(phase == lifecycle.Running, "progress", "%s is %s: %s", inc.name, phase, jsonOf(a.plan.Status))
	allEndless := true
	for _, list := range [][]corev1.Container{inc.pod.Spec.InitContainers, inc.pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			_, what, _ := specOf(inc.pod, c.Name)
			if !endless(inc.pod, c, what) {
				allEndless = allEndless && what == initC
				continue
			}
			last := w.last(c.Name)
			l.must(last != nil && last.State == runtime.ContainerRunning, "progress", "%s does not run in %s: %s", c.Name, inc.name, jsonOf(a.plan.Status))
			l.must(last.Annotations[runtime.AnnotationContainerHash] == lifecycle.ContainerHash(c), "progress", "%s runs an old image", c.Name)
		}
	}
	l.must(len(w.ready(l.now)) == 1, "progress", "%d ready sandboxes", len(w.ready(l.now)))
	ready := condition(&a.plan.Status, corev1.PodReady)
	l.must(!allEndless || ready.Status == corev1.ConditionTrue, "progress", "%s is not ready: %s", inc.name, jsonOf(a.plan.Status))
	if allEndless {
		l.must(a.plan.Status.Phase == corev1.PodRunning, "progress", "%s is %s", inc.name, a.plan.Status.Phase)
	}
	for i := range inc.pod.Spec.Containers {
		if !endless(inc.pod, &inc.pod.Spec.Containers[i], mainC) {
			continue
		}
		return
	}
	l.must(false, "progress", "%s has nothing to run and does not end: %s", inc.name, jsonOf(a.plan.Status))
}

// checkEnded holds that a pod that ended keeps nothing that it needs no more.
func (l *life) checkEnded(inc *incarnation) {
	a, w := inc.agent, inc.w
	l.must(!a.mem.Ending.Reason.Leaves(), "progress", "%s is not gone: %s, %s", inc.name, a.mem.Phase, w.left())
	l.must(a.mem.Phase == lifecycle.Cleaning, "progress", "%s is %s, though it ended: %s", inc.name, a.mem.Phase, w.left())
	l.must(len(w.running(l.now)) == 0 && len(w.ready(l.now)) == 0, "progress", "%s ended and has %s", inc.name, w.left())
	l.must(len(w.mounted) == 0 && !w.cgroup, "progress", "%s ended and has %s", inc.name, w.left())
	a.checkNetworks(l.now)
	l.must(terminal(a.plan.Status.Phase), "progress", "%s ended %s", inc.name, a.plan.Status.Phase)
}

// checkGone holds that in the end the node is empty.
func (l *life) checkGone() {
	for _, inc := range l.incs {
		l.must(inc.gone, "progress", "%s is not gone: %s, %s", inc.name, inc.agent.mem.Phase, inc.w.left())
		l.must(inc.w.empty(), "finished leaves nothing", "%s: %s", inc.name, inc.w.left())
	}
}
