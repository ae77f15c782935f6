package userns

// pickInput is all that the choice of a range depends on.
type pickInput struct {
	owned IDs
	size  uint32
	held  []IDs
	// lost says that somebody may hold a range that nobody knows of.
	lost bool
}

// pick chooses the lowest range that is free. Where a note was lost it is the
// highest one: what was given away before is found at the low end.
func pick(in pickInput) (IDs, bool) {
	count := in.owned.Length / in.size
	for i := range count {
		if in.lost {
			i = count - 1 - i
		}
		candidate := IDs{First: in.owned.First + i*in.size, Length: in.size}
		if !overlapsAny(candidate, in.held) {
			return candidate, true
		}
	}
	return IDs{}, false
}

func overlapsAny(a IDs, others []IDs) bool {
	for _, b := range others {
		if uint64(a.First) < uint64(b.First)+uint64(b.Length) && uint64(b.First) < uint64(a.First)+uint64(a.Length) {
			return true
		}
	}
	return false
}
