package podactor

// TraceBytes is what the packed trace holds.
func (a *Actor) TraceBytes() int {
	a.trace.mu.Lock()
	defer a.trace.mu.Unlock()
	total := 0
	for _, rec := range a.trace.ring.Items() {
		total += len(rec.packed)
	}
	return total
}
