package podactor

import "nodekit.dev/node/lifecycle"

// keepProbes has the prober check the runs of the plan, and no others.
func (r *run) keepProbes(runs []lifecycle.ProbedRun) {
	if r.parts.Prober == nil {
		return
	}
	wanted := make(map[string]bool, len(runs))
	for _, probed := range runs {
		wanted[probed.Container] = true
		req := ProbeRequest{Pod: r.want.Pod, Run: probed}
		if last, found := r.probed[probed.Container]; found && last.Pod == req.Pod && sameRun(last.Run, probed) {
			continue
		}
		r.probed[probed.Container] = req
		r.sink("prober", func() {
			if err := r.parts.Prober.Watch(req); err != nil {
				r.log.Error("a container is not probed", "container", probed.Container, "err", err)
			}
		})
	}
	for name, req := range r.probed {
		if !wanted[name] {
			delete(r.probed, name)
			r.sink("prober", func() { r.parts.Prober.Rest(req) })
		}
	}
}

// sameRun says that nothing is to be told to the prober again. What counts now
// is what it said itself.
func sameRun(a, b lifecycle.ProbedRun) bool {
	a.Started, a.Ready = b.Started, b.Ready
	return a == b
}

// forgetProbes is for a pod of which nothing is left.
func (r *run) forgetProbes() {
	if r.parts.Prober != nil {
		r.sink("prober", func() { r.parts.Prober.Forget(r.want.UID) })
	}
}
