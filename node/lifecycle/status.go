package lifecycle

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/resources"
)

// report makes the status to publish.
func (d *decision) report() {
	started := stamp(d.mem.StartTime)
	s := corev1.PodStatus{StartTime: &started}
	if d.pod != nil {
		s.ObservedGeneration = d.pod.Generation
		s.QOSClass = resources.QOSClass(d.pod)
		s.NominatedNodeName = d.pod.Status.NominatedNodeName
		s.Resources, s.AllocatedResources = podResources(d.pod)
	}
	d.addAddresses(&s)
	if !d.neverAdmitted() {
		s.InitContainerStatuses = d.statuses(initRole, sidecarRole)
		s.ContainerStatuses = d.statuses(mainRole)
		s.EphemeralContainerStatuses = d.statuses(ephemeralRole)
	}
	if d.final() {
		d.settleLost(&s)
	}
	d.addPhase(&s)
	d.addConditions(&s)
	d.mem.Status = &s
	d.plan.Status = *s.DeepCopy()
}

// podResources are what the pod has in total, and what it was given for it.
func podResources(pod *corev1.Pod) (*corev1.ResourceRequirements, corev1.ResourceList) {
	total := corev1.ResourceRequirements{}
	if pod.Spec.Resources != nil {
		total = *pod.Spec.Resources.DeepCopy()
	}
	total.Requests, total.Limits = some(resources.PodRequests(pod)), some(resources.PodLimitTotals(pod))
	return &total, some(resources.PodRequests(pod))
}

// some is nil for an empty list, which the API does not tell from none.
func some(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return nil
	}
	return list
}

// final says that no container runs and none will.
func (d *decision) final() bool { return d.mem.Phase >= Cleaning }

// neverAdmitted says that the pod was rejected before anything of it ran, by
// this agent or one before it: the stock kubelet tells nothing of its
// containers then.
func (d *decision) neverAdmitted() bool {
	rejectedBefore := d.endedBefore() && len(d.in.Want.Prior.ContainerStatuses)+len(d.in.Want.Prior.InitContainerStatuses) == 0
	if d.mem.Ending == nil || (d.in.Seen.Admission.Verdict != VerdictReject && !rejectedBefore) {
		return false
	}
	for _, c := range d.containers {
		if c.mem.Ran {
			return false
		}
	}
	return true
}

// addPhase sets phase, reason and message. A terminal phase is told only when
// nothing runs any more, and stays.
func (d *decision) addPhase(s *corev1.PodStatus) {
	if old := d.oldStatus(); old != nil && terminalPhase(old.Phase) && d.mem.Ending != nil {
		s.Phase, s.Reason, s.Message = old.Phase, old.Reason, old.Message
		return
	}
	if !d.final() {
		s.Phase = d.livingPhase(s)
		return
	}
	ending := d.mem.Ending
	switch {
	case ending.StatusReason != "" || fails(ending.Reason):
		s.Phase, s.Reason, s.Message = corev1.PodFailed, ending.StatusReason, ending.Message
	case d.pod == nil:
		s.Phase = corev1.PodFailed
	default:
		s.Phase = endPhase(s.ContainerStatuses)
	}
}

// fails says that a pod that stops for this reason has failed, whatever its
// containers' exit codes.
func fails(r StopReason) bool {
	switch r {
	case StopEvicted, StopShutdown, StopRejected, StopDeadline:
		return true
	case StopDeleted, StopOrphaned, StopCompleted:
	}
	return false
}

// endPhase is Succeeded if every main container ended with exit code 0.
func endPhase(mains []corev1.ContainerStatus) corev1.PodPhase {
	for _, st := range mains {
		if st.State.Terminated == nil || st.State.Terminated.ExitCode != 0 {
			return corev1.PodFailed
		}
	}
	if len(mains) == 0 {
		return corev1.PodFailed
	}
	return corev1.PodSucceeded
}

// livingPhase is Running once every main container was started.
func (d *decision) livingPhase(s *corev1.PodStatus) corev1.PodPhase {
	for _, st := range s.ContainerStatuses {
		if st.State.Waiting != nil && st.LastTerminationState.Terminated == nil {
			return corev1.PodPending
		}
	}
	if len(s.ContainerStatuses) == 0 {
		return corev1.PodPending
	}
	return corev1.PodRunning
}

// addAddresses sets the addresses of the node and of the pod. Those of the pod
// stay when its sandbox is gone, until another one has new ones.
func (d *decision) addAddresses(s *corev1.PodStatus) {
	hostIPs := d.in.Want.Rules.HostIPs
	for _, ip := range hostIPs {
		s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(hostIPs) > 0 {
		s.HostIP = hostIPs[0]
	}
	for _, ip := range PodIPs(d.sandboxIPs(), hostIPs, d.pod != nil && d.pod.Spec.HostNetwork && d.mem.Phase > Queued) {
		s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: ip})
	}
	if old := d.oldStatus(); len(s.PodIPs) == 0 && old != nil {
		s.PodIPs = append([]corev1.PodIP(nil), old.PodIPs...)
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}

func (d *decision) sandboxIPs() []string {
	for _, sandbox := range d.in.Seen.Runtime.Sandboxes {
		if sandbox.Ready {
			return sandbox.IPs
		}
	}
	return nil
}

// PodIPs are the addresses of a pod, as its status and its containers'
// environment tell them: what the runtime says, one per family,
// the node's primary family first. A host-network pod for which the runtime
// says nothing has the node's; to a single address of its own the node's
// second one is added, if that is of the other family.
func PodIPs(fromRuntime, hostIPs []string, hostNetwork bool) []string {
	ips := onePerFamily(fromRuntime, hostIPs)
	if !hostNetwork {
		return ips
	}
	if len(ips) == 0 && len(hostIPs) > 0 {
		ips = []string{canonical(hostIPs[0])}
	}
	if len(ips) == 1 && len(hostIPs) > 1 && isIPv6(ips[0]) != isIPv6(hostIPs[1]) {
		ips = append(ips, canonical(hostIPs[1]))
	}
	return ips
}

// HostIPs are the addresses that status.hostIPs and host-network pods have on a
// node, from its Node object: its first internal address, else its first
// external one, and the first of the other family (k/k#106715). Nil: the object
// tells of none.
func HostIPs(n *corev1.Node) []string {
	var all []netip.Addr
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == kind {
				all = append(all, ip.Unmap())
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := []string{all[0].String()}
	for _, ip := range all {
		if ip.Is6() != all[0].Is6() {
			return append(out, ip.String())
		}
	}
	return out
}

func onePerFamily(ips, hostIPs []string) []string {
	var v4, v6 string
	for _, ip := range ips {
		switch {
		case isIPv6(ip) && v6 == "":
			v6 = canonical(ip)
		case !isIPv6(ip) && v4 == "":
			v4 = canonical(ip)
		}
	}
	first, second := v4, v6
	if len(hostIPs) > 0 && isIPv6(hostIPs[0]) {
		first, second = v6, v4
	}
	var out []string
	for _, ip := range []string{first, second} {
		if ip != "" {
			out = append(out, ip)
		}
	}
	return out
}

func isIPv6(ip string) bool {
	a, err := netip.ParseAddr(ip)
	return err == nil && a.Unmap().Is6()
}

func canonical(ip string) string {
	if a, err := netip.ParseAddr(ip); err == nil {
		return a.Unmap().String()
	}
	return ip
}
