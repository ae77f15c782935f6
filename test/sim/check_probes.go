package sim

import (
	"slices"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// checkProbes: what is probed runs, has a probe and is not about to end; and
// what runs for good is probed.
func (a *agent) checkProbes(in lifecycle.Input, plan lifecycle.Plan) {
	must := a.l.must
	must(plan.Mem.Ending == nil || len(plan.Probes) == 0, "nothing that ends is probed", "%v", plan.Probes)
	probed := map[string]bool{}
	for _, p := range plan.Probes {
		spec, _, _ := specOf(a.want.Pod, p.Container)
		must(spec != nil && !probed[p.Container], "probed once, by its spec", "%s", p.Container)
		must(spec.LivenessProbe != nil || spec.ReadinessProbe != nil || spec.StartupProbe != nil, "only what has a probe is probed", "%s", p.Container)
		probed[p.Container] = true
		i := slices.IndexFunc(in.Seen.Runtime.Containers, func(r runtime.Container) bool { return r.ID == p.ContainerID })
		must(i >= 0 && in.Seen.Runtime.Containers[i].State == runtime.ContainerRunning, "only what runs is probed", "%s", p.ContainerID)
		must(plan.Mem.Containers[p.Container].KillID != p.ContainerID, "nothing that is killed is probed", "%s", p.ContainerID)
		hook := in.Seen.PostStart[p.ContainerID]
		asked := plan.Mem.Containers[p.Container].HookID == p.ContainerID && spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil
		must(!asked || hook.Done && !hook.Failed, "probed after its postStart hook", "%s", p.ContainerID)
	}
	if !in.Seen.Looked || in.Want.Held {
		return // what was told before is told again
	}
	for _, st := range plan.Status.ContainerStatuses {
		spec, _, _ := specOf(a.want.Pod, st.Name)
		lost := slices.ContainsFunc(in.Seen.Runtime.Containers, func(r runtime.Container) bool {
			return r.Name == st.Name && r.State == runtime.ContainerUnknown
		})
		must(!st.Ready || lost || spec == nil || spec.ReadinessProbe == nil || probed[st.Name], "what is ready by a probe is probed", "%s", st.Name)
	}
}
