package app

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// changes tells what is new in an input, in words. The first input of a trace
// is compared with nothing.
func changes(before, now lifecycle.Input) []string {
	var d differ
	if before.Mem.Phase != now.Mem.Phase {
		d.say("the machine is %s", now.Mem.Phase)
	}
	d.want(before.Want, now.Want)
	d.seen(before.Seen, now.Seen)
	d.runtime(before.Seen.Runtime, now.Seen.Runtime)
	return d.said
}

// differ collects what is said.
type differ struct{ said []string }

func (d *differ) say(format string, args ...any) {
	d.said = append(d.said, fmt.Sprintf(format, args...))
}

// became says text when something is true that was not.
func (d *differ) became(before, now bool, text string) {
	if !before && now {
		d.said = append(d.said, text)
	}
}

func (d *differ) want(before, now lifecycle.Want) {
	switch {
	case now.Pod == nil && before.UID == "":
		d.say("a pod that no source names")
	case now.Pod != nil && before.Pod == nil:
		d.say("a pod to run")
	case now.Pod != nil && !reflect.DeepEqual(before.Pod, now.Pod):
		d.say("a new spec")
	}
	d.became(before.Held, now.Held, "an older pod of that name or UID is not gone yet")
	d.became(now.Held, before.Held, "the older pod is gone")
	if stop := now.Stop; stop != nil && (before.Stop == nil || *before.Stop != *stop) {
		d.say("a stop: %s within %v %s", stop.Reason, stop.Grace, stop.Message)
	}
}

func (d *differ) seen(before, now lifecycle.Seen) {
	d.became(before.Looked, now.Looked, "the runtime was read")
	d.became(before.VolumesLooked, now.VolumesLooked, "the mounts were read")
	if before.Looked && before.NetworkReady != now.NetworkReady {
		d.say("network ready: %t", now.NetworkReady)
	}
	if a := now.Admission; a != before.Admission {
		d.said = append(d.said, oneLine(fmt.Sprintf("admission: %s %s %s", a.Verdict, a.Reason, a.Message)))
	}
	d.became(before.Prepared, now.Prepared, "the hooks are prepared")
	d.became(before.Cgroup, now.Cgroup, "the cgroup is made")
	d.became(before.StoppingDone, now.StoppingDone, "the hooks know of the stop")
	d.became(before.CgroupGone, now.CgroupGone, "the cgroup is gone")
	d.became(before.CleanedUp, now.CleanedUp, "the hooks have cleaned up")
	d.became(before.DirsGone, now.DirsGone, "the pod's directories are gone")
	for _, name := range sorted(now.Mounted) {
		d.became(before.Mounted[name], now.Mounted[name], "volume "+name+" is mounted")
	}
	for _, name := range sorted(before.Mounted) {
		d.became(now.Mounted[name], before.Mounted[name], "volume "+name+" is unmounted")
	}
	d.perContainer(before, now)
	for _, key := range sorted(now.Failed) {
		if f := now.Failed[key]; f != before.Failed[key] {
			d.said = append(d.said, oneLine(fmt.Sprintf("%s failed (%d in a row): %s: %s", key, f.Count, f.Reason, f.Message)))
		}
	}
}

func (d *differ) perContainer(before, now lifecycle.Seen) {
	for _, name := range sorted(now.Images) {
		if image := now.Images[name]; image != before.Images[name] {
			d.say("image of %s: %s", name, image.Ref)
		}
	}
	for _, name := range sorted(now.Probes) {
		if p := now.Probes[name]; !reflect.DeepEqual(p, before.Probes[name]) {
			d.said = append(d.said, oneLine(fmt.Sprintf("probes of %s: started %s, ready %s, unhealthy %t %s", name, verdict(p.Started), verdict(p.Ready), p.Unhealthy, p.Message)))
		}
	}
	for _, id := range sorted(now.PostStart) {
		if p := now.PostStart[id]; p != before.PostStart[id] && p.Done {
			d.said = append(d.said, oneLine(fmt.Sprintf("postStart of %s: failed %t %s", id, p.Failed, p.Message)))
		}
	}
}

func verdict(b *bool) string {
	if b == nil {
		return "unknown"
	}
	return fmt.Sprint(*b)
}

func (d *differ) runtime(before, now runtime.Pod) {
	old := byID(before.Sandboxes, func(s runtime.Sandbox) string { return s.ID })
	for _, s := range now.Sandboxes {
		was, known := old[s.ID]
		delete(old, s.ID)
		if !known || was.Ready != s.Ready {
			d.say("sandbox %s (attempt %d) ready: %t", s.ID, s.Attempt, s.Ready)
		}
	}
	for _, id := range sorted(old) {
		d.say("sandbox %s is gone", id)
	}
	d.runs(before, now)
}

func (d *differ) runs(before, now runtime.Pod) {
	old := byID(before.Containers, func(c runtime.Container) string { return c.ID })
	for _, c := range now.Containers {
		was, known := old[c.ID]
		delete(old, c.ID)
		if !known || was.State != c.State {
			d.say("container %s %s (attempt %d) %s", c.Name, c.ID, c.Attempt, runState(c))
		}
	}
	for _, id := range sorted(old) {
		d.say("container %s %s is gone", old[id].Name, id)
	}
}

func runState(c runtime.Container) string {
	if c.State != runtime.ContainerExited {
		return string(c.State)
	}
	return oneLine(fmt.Sprintf("exited with %d %s after %v", c.ExitCode, c.Reason, c.FinishedAt.Sub(c.StartedAt).Round(time.Millisecond)))
}

func byID[T any](all []T, id func(T) string) map[string]T {
	m := map[string]T{}
	for _, one := range all {
		m[id(one)] = one
	}
	return m
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
