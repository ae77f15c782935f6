package lifecycle

// clean takes away what a pod without running containers still has, each step
// once the one before is done. Where the pod is kept (it ended by itself and
// nobody deleted it), its dead containers and directories stay.
func (d *decision) clean() {
	if d.anyActive() {
		d.stopWithHooks() // a start that won late: the hooks are owed to it as to any other
		return
	}
	leaves := d.mem.Ending.Reason.Leaves()
	if !leaves {
		d.removeDead()
	}
	if !d.sandboxesEnded(leaves) || !d.lookedAgain() || !d.unmounted() || !d.cgroupRemoved() || !leaves {
		return
	}
	if d.cleanupHooksDone() && !d.in.Seen.DirsGone {
		d.try(Action{Kind: RemovePodDir, Key: KeyDirs})
	}
}

// lookedAgain says that the runtime was looked at since the pod is to end, and
// asks for that look. A call of an agent that was killed may take effect after
// the first look of the one after it, which until now had no reason for a second:
// volumes and cgroup are not to go under a sandbox that came that late.
func (d *decision) lookedAgain() bool {
	looked := d.in.Seen.LookedAt
	if looked.IsZero() || !looked.Before(d.mem.EndingAt) {
		return true
	}
	d.plan.LookSince = d.mem.EndingAt
	return false
}

// sandboxesEnded stops all sandboxes, or removes them with what is in them.
func (d *decision) sandboxesEnded(remove bool) bool {
	done := !d.busy(KeySandbox)
	for _, s := range d.in.Seen.Runtime.Sandboxes {
		switch {
		case remove:
			d.try(Action{Kind: RemoveSandbox, Key: KeySandbox, SandboxID: s.ID})
		case s.Ready || !d.mem.StoppedSandboxes[s.ID]:
			d.try(Action{Kind: StopSandbox, Key: KeySandbox, SandboxID: s.ID})
		default:
			continue
		}
		done = false
	}
	if remove && !d.orphansRemoved() {
		return false
	}
	return done
}

// orphansRemoved removes containers whose sandbox the runtime does not show;
// the others go with their sandbox.
func (d *decision) orphansRemoved() bool {
	for _, c := range d.containers {
		for _, r := range append(c.runs, c.unstarted...) {
			if !d.shows(r.SandboxID) {
				d.removeContainer(c, r, "NoSandbox")
			}
		}
	}
	return len(d.in.Seen.Runtime.Containers) == 0
}

// unmounted unmounts all volumes, in parallel.
func (d *decision) unmounted() bool {
	done := d.in.Seen.VolumesLooked
	for _, name := range sortedKeys(d.in.Seen.Mounted) {
		if d.in.Seen.Mounted[name] {
			d.try(Action{Kind: Unmount, Key: KeyVolume(name), Volume: name})
			done = false
		}
	}
	return done
}

func (d *decision) cgroupRemoved() bool {
	if !d.in.Seen.CgroupGone {
		d.try(Action{Kind: RemoveCgroup, Key: KeyCgroup})
	}
	return d.in.Seen.CgroupGone
}

// cleanupHooksDone runs the vendor's Cleanup hooks. They ask for a pod, which
// an orphan does not have.
func (d *decision) cleanupHooksDone() bool {
	if d.in.Seen.CleanedUp || d.pod == nil {
		return true
	}
	d.try(Action{Kind: RunHooksCleanup, Key: KeyHooks})
	return false
}

// gone says that nothing is left of a pod that leaves nothing.
func (d *decision) gone() bool {
	if !d.mem.Ending.Reason.Leaves() || len(d.in.Busy) > 0 || !d.in.Seen.Runtime.Empty() || !d.in.Seen.VolumesLooked {
		return false
	}
	for _, mounted := range d.in.Seen.Mounted {
		if mounted {
			return false
		}
	}
	return d.in.Seen.CgroupGone && (d.in.Seen.CleanedUp || d.pod == nil) && d.in.Seen.DirsGone
}
