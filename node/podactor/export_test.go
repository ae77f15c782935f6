package podactor

// TraceBytes is what the packed trace holds, and how much is not packed yet.
func (a *Actor) TraceBytes() (packed, fresh int) {
	a.trace.mu.Lock()
	defer a.trace.mu.Unlock()
	for _, b := range a.trace.packed {
		packed += len(b.entries)
	}
	return packed, len(a.trace.fresh)
}
