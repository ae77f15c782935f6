package podactor

import (
	"reflect"

	"nodekit.dev/node/lifecycle"
)

// keepProbes has the prober check the runs of the plan, and no others. It says
// whether the prober knows something of a run that the plan was made without.
func (r *run) keepProbes(runs []lifecycle.ProbedRun) (news bool) {
	if r.parts.Prober == nil || len(runs)+len(r.probed) == 0 {
		return false
	}
	wanted := make(map[string]bool, len(runs))
	for _, probed := range runs {
		wanted[probed.Container] = true
		req := ProbeRequest{Pod: r.want.Pod, Run: probed}
		if last, found := r.probed[probed.Container]; found && last.Pod == req.Pod && sameRun(last.Run, probed) {
			continue
		}
		if r.probed == nil {
			r.probed = map[string]ProbeRequest{}
		}
		r.probed[probed.Container] = req
		news = r.watch(req) || news
	}
	for name, req := range r.probed {
		if !wanted[name] {
			delete(r.probed, name)
			r.sink("prober", func() { r.parts.Prober.Rest(req) })
		}
	}
	return news
}

func (r *run) watch(req ProbeRequest) (news bool) {
	name := req.Run.Container
	r.sink("prober", func() {
		result, err := r.parts.Prober.Watch(req)
		if err != nil {
			r.log.Error("a container is not probed", "container", name, "err", err)
			return
		}
		news = !reflect.DeepEqual(r.seen.Probes[name], result.Probe)
		r.heardProbe(name, result.Probe)
	})
	return news
}

func (r *run) heardProbe(container string, probe lifecycle.Probe) {
	if r.seen.Probes == nil {
		r.seen.Probes = map[string]lifecycle.Probe{}
	}
	r.seen.Probes[container] = probe
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
