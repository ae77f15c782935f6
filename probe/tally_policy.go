package probe

// Tally is what the results of one probe add up to.
type Tally struct {
	// Value is what counts: Success, Failure, or Unknown before either does.
	Value Result `json:"value"`
	// Last is the newest Success or Failure, and Count how many of those there
	// were in a row, at most as many as the threshold asks for.
	Last  Result `json:"last"`
	Count int    `json:"count"`
}

// initial is what counts before the first check: a container lives, is not
// ready, and has not started.
func initial(t Type) Tally {
	switch t {
	case Liveness:
		return Tally{Value: Success}
	case Readiness:
		return Tally{Value: Failure}
	case Startup:
	}
	return Tally{}
}

// before is what counts of a run that was told to be started or ready before it
// was first watched.
func before(t Type, c *Container) Tally {
	if t == Startup && c.WasStarted || t == Readiness && c.WasReady {
		return Tally{Value: Success}
	}
	return initial(t)
}

// add counts one result. One that is not known changes nothing.
func (t Tally) add(r Result, s *Spec) Tally {
	threshold := s.SuccessThreshold
	switch r {
	case Success:
	case Warning:
		r = Success
	case Failure:
		threshold = s.FailureThreshold
	case Unknown:
		return t
	}
	if r == t.Last {
		t.Count = min(t.Count+1, threshold)
	} else {
		t.Last, t.Count = r, 1
	}
	if t.Count >= threshold {
		t.Value = r
	}
	return t
}
