package lifecycle

// admit asks whether the pod may start.
func (d *decision) admit() {
	admission := d.in.Seen.Admission
	if admission.Verdict == VerdictReject {
		return // leftRunning
	}
	if admission.Verdict == VerdictLater && d.now.Before(admission.RetryAt) {
		d.wakeAt(admission.RetryAt)
		return
	}
	d.try(Action{Kind: Admit, Key: KeyAdmit})
}

// prepared runs the vendor's Prepare hooks, before anything of the pod is made.
func (d *decision) prepared() bool {
	if !d.in.Seen.Prepared {
		d.try(Action{Kind: RunHooksPrepare, Key: KeyHooks})
	}
	return d.in.Seen.Prepared
}

func (d *decision) ensureCgroup() {
	if !d.in.Seen.Cgroup {
		d.try(Action{Kind: EnsureCgroup, Key: KeyCgroup})
	}
}

func (d *decision) cgroupReady() bool { return d.in.Seen.Cgroup && !d.busy(KeyCgroup) }
