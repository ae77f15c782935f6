package lifecycle

// Merge folds a newer wish into an older one: the newest spec wins, a stop is
// sticky, and the moment of the kill only comes nearer.
func (w Want) Merge(next Want) Want {
	next.Stop = mergeStop(w.Stop, next.Stop)
	if next.Pod == nil {
		next.Pod = w.Pod
	}
	if next.Prior == nil {
		next.Prior = w.Prior
	}
	return next
}

// mergeStop keeps the first reason (a stop that leaves nothing outranks one
// that keeps dead containers) and the earlier kill time.
func mergeStop(old, next *Stop) *Stop {
	if old == nil || next == nil {
		if next != nil {
			return next
		}
		return old
	}
	merged := *old
	if next.Reason.Leaves() && !old.Reason.Leaves() {
		merged.Reason = next.Reason
	}
	if next.KillAt().Before(old.KillAt()) {
		merged.Grace = max(0, next.KillAt().Sub(old.At))
	}
	return &merged
}
