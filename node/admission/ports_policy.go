package admission

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/resources"
)

const (
	reasonPorts = "NodePorts"
	whyPorts    = "node(s) didn't have free ports for the requested pod ports"
	// portsRetry is for a wait whose end is not told: that of a pod that comes
	// first. That a pod has gone is told, see node.Node.
	portsRetry = time.Second
)

// portsInput is all that the decision about one pod's ports depends on.
type portsInput struct {
	now     time.Time
	pod     *corev1.Pod
	pods    []node.PodView
	granted map[string]bool
}

// decide says whether the pod may have its ports. One that runs already has
// them, whoever else wants them.
func decide(in portsInput) lifecycle.Admission {
	mine, uid := hostPorts(in.pod), string(in.pod.UID)
	verdict := admit()
	for _, v := range in.pods {
		switch {
		case v.UID == uid:
			if runs(v) {
				return admit()
			}
			continue
		case v.Pod == nil, v.Released, v.Phase == lifecycle.Finished, !clash(mine, hostPorts(v.Pod)):
			continue
		}
		switch claimOf(in, v) {
		case has:
			verdict = worse(verdict, predicate(reasonPorts, whyPorts))
		case goes, comesFirst:
			verdict = worse(verdict, later(reasonPorts,
				"Predicate NodePorts failed: "+whyPorts+"; pod "+v.Namespace+"/"+v.Name+" has them or comes first", in.now.Add(portsRetry)))
		case comesBehind:
		}
	}
	return verdict
}

// worse: no outranks later, which outranks yes.
func worse(a, b lifecycle.Admission) lifecycle.Admission {
	if a.Verdict == lifecycle.VerdictReject || b.Verdict == lifecycle.VerdictAdmit {
		return a
	}
	return b
}

// claim is what another pod's wish for a port means for this one.
type claim int8

const (
	has         claim = iota // it was let through
	goes                     // it was, and is going
	comesFirst               // nobody has decided on it, and it comes first
	comesBehind              // nobody has decided on it, and it comes behind
)

func claimOf(in portsInput, other node.PodView) claim {
	going := other.Leaving || other.Phase >= lifecycle.Stopping
	switch {
	case other.Phase > lifecycle.Queued || in.granted[other.UID] || runs(other):
		if going {
			return goes
		}
		return has
	case going:
		return comesBehind // it will never start
	case other.Status.Phase == "":
		return comesFirst // it may run: the runtime has not been asked yet
	case first(other.Pod, in.pod):
		return comesFirst
	}
	return comesBehind
}

// runs says that the runtime has shown a container of the pod at work.
func runs(v node.PodView) bool {
	running := func(c corev1.ContainerStatus) bool { return c.State.Running != nil }
	return slices.ContainsFunc(v.Status.ContainerStatuses, running) || slices.ContainsFunc(v.Status.InitContainerStatuses, running)
}

// first is an order among pods that is the same from both sides: the older one
// comes first. Static pods have no age and so come before all others.
func first(a, b *corev1.Pod) bool {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID),
	) < 0
}

// hostPort is a port of the host that a container has or wants.
type hostPort struct {
	ip       string // empty: all addresses
	protocol corev1.Protocol
	port     int32
}

// hostPorts are those of the containers that stay: main containers and sidecars.
func hostPorts(pod *corev1.Pod) []hostPort {
	var out []hostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			want := hostPort{ip: p.HostIP, protocol: p.Protocol, port: p.HostPort}
			if want.ip == "0.0.0.0" {
				want.ip = ""
			}
			if want.protocol == "" {
				want.protocol = corev1.ProtocolTCP
			}
			out = append(out, want)
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; resources.IsSidecar(c) {
			add(c)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	return out
}

func clash(mine, theirs []hostPort) bool {
	return slices.ContainsFunc(mine, func(m hostPort) bool {
		return slices.ContainsFunc(theirs, func(t hostPort) bool {
			return m.port == t.port && m.protocol == t.protocol && (m.ip == "" || t.ip == "" || m.ip == t.ip)
		})
	})
}
