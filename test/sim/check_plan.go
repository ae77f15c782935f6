package sim

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
)

// Limits on how busy a machine may be.
const (
	pureEvery      = 24   // one decision in so many is checked for being pure
	actionsAnHour  = 2500 // far above what chaos of this kind needs
	stepsAtOneTime = 60
)

// checkPlan holds what is true of every plan.
func (a *agent) checkPlan(in lifecycle.Input, plan lifecycle.Plan) {
	must := a.l.must
	must(plan.Mem.Phase >= in.Mem.Phase, "phase never falls", "from %s to %s", in.Mem.Phase, plan.Mem.Phase)
	must(plan.Wake.IsZero() || plan.Wake.After(in.Now), "wake is later", "wake %s, now %s", plan.Wake, in.Now)
	taken := map[lifecycle.Key]bool{}
	for _, action := range plan.Do {
		_, busy := in.Busy[action.Key]
		must(!busy && !taken[action.Key], "one action per key", "%s", describe(action))
		taken[action.Key] = true
	}
	if !in.Mem.KillAt.IsZero() {
		must(!plan.Mem.KillAt.After(in.Mem.KillAt), "grace never grows", "of the pod, from %s to %s", in.Mem.KillAt, plan.Mem.KillAt)
	}
	if in.Mem.Ending != nil {
		must(plan.Mem.Ending != nil, "an end is for good", "%s is forgotten", in.Mem.Ending.Reason)
		must(plan.Mem.Ending.Reason.Leaves() || !in.Mem.Ending.Reason.Leaves(), "an end is for good", "a deletion is forgotten")
	}
	if in.Want.Stop != nil && in.Seen.Looked && !in.Want.Held {
		must(plan.Mem.Ending != nil, "a stop is obeyed", "%s is not", in.Want.Stop.Reason)
		must(plan.Mem.Ending.Reason.Leaves() || !in.Want.Stop.Reason.Leaves(), "a stop is obeyed", "%s is not", in.Want.Stop.Reason)
	}
	for name, m := range in.Mem.Containers {
		if now, kept := plan.Mem.Containers[name]; kept {
			must(now.Restarts >= m.Restarts, "restart counts never fall", "%s from %d to %d", name, m.Restarts, now.Restarts)
		}
	}
	a.checkNewsHeard(plan)
	a.checkDeadline(plan)
	a.noteEnd(in, plan)
	a.checkHurry(plan)
	a.checkProbes(in, plan)
	a.checkPure(in, plan)
	a.l.checkPace()
}

// noteEnd follows when the pod has to be dead at the latest.
func (a *agent) noteEnd(in lifecycle.Input, plan lifecycle.Plan) {
	ending := plan.Mem.Ending
	if ending == nil {
		return
	}
	if a.facts.ended.IsZero() {
		a.facts.ended = in.Now
		grace := time.Hour
		if pod := in.Want.Pod; pod != nil {
			grace = time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
		}
		a.facts.killLimit = in.Now.Add(grace)
		if in.Want.Stop != nil {
			a.facts.killLimit = a.inc.killAt
		}
	}
	if in.Want.Stop != nil && a.inc.killAt.Before(a.facts.killLimit) {
		a.facts.killLimit = a.inc.killAt
	}
}

func (a *agent) checkDeadline(plan lifecycle.Plan) {
	pod := a.want.Pod
	if pod == nil || pod.Spec.ActiveDeadlineSeconds == nil || a.want.Held || !a.seen.Looked || plan.Mem.StartTime.IsZero() {
		return
	}
	due := plan.Mem.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	if !a.l.now.Before(due) {
		a.l.must(plan.Mem.Ending != nil, "deadline", "over since %s", a.l.now.Sub(due))
	} else if plan.Mem.Ending != nil {
		a.l.must(plan.Mem.Ending.Reason != lifecycle.StopDeadline, "deadline", "%s too early", due.Sub(a.l.now))
	} else {
		a.l.must(!plan.Wake.IsZero() && !plan.Wake.After(due), "deadline", "nobody wakes for it")
	}
}

// checkPure holds that Decide is a pure function of what JSON tells of its input.
func (a *agent) checkPure(in lifecycle.Input, plan lifecycle.Plan) {
	if a.l.steps%pureEvery != 0 {
		return
	}
	before := jsonOf(in)
	again := a.l.decide(in)
	a.l.must(reflect.DeepEqual(plan, again), "equal inputs, equal plans", "%s\nis not\n%s", jsonOf(plan), jsonOf(again))
	a.l.must(jsonOf(in) == before, "the input stays as it is", "it was %s", before)
	var back lifecycle.Input
	if err := json.Unmarshal([]byte(before), &back); err != nil {
		a.l.must(false, "JSON", "%v", err)
	}
	replayed := jsonOf(a.l.decide(back))
	a.l.must(replayed == jsonOf(plan), "a recorded input replays", "%s\nis not\n%s", jsonOf(plan), replayed)
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint("cannot be marshalled: ", err)
	}
	return string(b)
}

// checkPace holds that the machine does not spin.
func (l *life) checkPace() {
	if !l.spinAt.Equal(l.now) {
		l.spinAt, l.spins = l.now, 0
	}
	l.spins++
	l.must(l.spins < stepsAtOneTime, "no spinning", "%d decisions at one moment", l.spins)
	if l.now.Sub(l.hour) >= time.Hour {
		l.busiest = max(l.busiest, l.actions-l.hourBegan)
		l.hour, l.hourBegan = l.now, l.actions
	}
	l.must(l.actions-l.hourBegan < actionsAnHour, "no livelock", "%d actions in an hour", l.actions-l.hourBegan)
}

func equalStatus(a, b *corev1.PodStatus) bool { return reflect.DeepEqual(a, b) }
