package lifecycle

import (
	"slices"
	"time"
)

// minRetry keeps an action from being tried in a tight loop where its failure
// tells no time, or where it ends well and yet leaves the world as it was.
const minRetry = time.Second

// try plans an action unless its key is taken or its last failure says to
// wait. It reports whether the action was planned.
func (d *decision) try(a Action) bool {
	if d.busy(a.Key) || d.planned(a.Key) || !d.retryDue(a) {
		return false
	}
	d.add(a)
	return true
}

// add plans an action without asking again.
func (d *decision) add(a Action) {
	d.plan.Do = append(d.plan.Do, a)
	d.mem.Asked[a.Key] = Asked{Kind: a.Kind, What: a.what(), At: d.now}
}

// what names the thing that an action works on beyond its key.
func (a Action) what() string {
	switch a.Kind {
	case Pull, StartContainer:
		return a.Image
	case StopContainer, RemoveContainer, RunPostStart:
		return a.ContainerID
	case StopSandbox, RemoveSandbox:
		return a.SandboxID
	case Mount, Unmount:
		return a.Volume
	case Admit, RunHooksPrepare, RunHooksStopping, RunHooksCleanup, EnsureCgroup, RemoveCgroup, RunSandbox, RemovePodDir:
	}
	return ""
}

// retryDue says whether what became of the same action before allows another try.
func (d *decision) retryDue(a Action) bool {
	f, failed := d.in.Seen.Failed[a.Key]
	asked, known := d.mem.Asked[a.Key]
	if known && (asked.Kind != a.Kind || asked.What != a.what()) {
		return true // what happened before happened to another action
	}
	var due time.Time
	switch {
	case failed && f.Fatal && !a.mustHappen():
		return false
	case failed:
		due = d.retryAt(f)
	case known:
		due = asked.At.Add(minRetry) // it ended well and changed nothing
	}
	d.wakeAt(due)
	return !d.now.Before(due)
}

// mustHappen says that nobody can be spared this action: however often it
// failed, what it takes away must go.
func (a Action) mustHappen() bool {
	switch a.Kind {
	case StopContainer, RemoveContainer, StopSandbox, RemoveSandbox, Unmount, RemoveCgroup,
		RunHooksStopping, RunHooksCleanup, RemovePodDir:
		return true
	case Admit, RunHooksPrepare, EnsureCgroup, Mount, Pull, RunSandbox, StartContainer, RunPostStart:
	}
	return false
}

func (d *decision) busy(key Key) bool {
	_, taken := d.in.Busy[key]
	return taken
}

// busyWith says whether that kind of action is in flight on the key.
func (d *decision) busyWith(key Key, kind Kind) bool {
	a, taken := d.in.Busy[key]
	return taken && a.Kind == kind
}

func (d *decision) planned(key Key) bool {
	return slices.ContainsFunc(d.plan.Do, func(a Action) bool { return a.Key == key })
}

// cancel asks a flight to end early, at most once per plan.
func (d *decision) cancel(key Key) {
	if !slices.Contains(d.plan.Cancel, key) {
		d.plan.Cancel = append(d.plan.Cancel, key)
	}
}

// cancelKinds cancels all flights of these kinds.
func (d *decision) cancelKinds(kinds ...Kind) {
	for _, key := range sortedKeys(d.in.Busy) {
		if slices.Contains(kinds, d.in.Busy[key].Kind) {
			d.cancel(key)
		}
	}
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
