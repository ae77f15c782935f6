package probe

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func tcp() corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}
}

// every is a probe with that period that counts each result.
func every(period time.Duration) *Spec {
	return &Spec{Handler: tcp(), Period: period, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 1}
}

func TestSpecOf(t *testing.T) {
	if got, want := SpecOf(&corev1.Probe{ProbeHandler: tcp()}), (Spec{Handler: tcp(), Period: 10 * time.Second, Timeout: time.Second, SuccessThreshold: 1, FailureThreshold: 3}); got.Period != want.Period || got.Timeout != want.Timeout || got.SuccessThreshold != 1 || got.FailureThreshold != 3 || got.InitialDelay != 0 || got.Grace != nil {
		t.Errorf("defaults: %+v, want %+v", got, want)
	}
	grace := int64(7)
	got := SpecOf(&corev1.Probe{ProbeHandler: tcp(), InitialDelaySeconds: 2, PeriodSeconds: 3, TimeoutSeconds: 4, SuccessThreshold: 5, FailureThreshold: 6, TerminationGracePeriodSeconds: &grace})
	if got.InitialDelay != 2*time.Second || got.Period != 3*time.Second || got.Timeout != 4*time.Second || got.SuccessThreshold != 5 || got.FailureThreshold != 6 || *got.Grace != 7*time.Second {
		t.Errorf("all fields: %+v", got)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestSpecValidate(t *testing.T) {
	negative := -time.Second
	for want, edit := range map[string]func(*Spec){
		"Handler: none: must be set, or Kind":      func(s *Spec) { s.Handler = corev1.ProbeHandler{} },
		"InitialDelay: -1s: must be at least 0":    func(s *Spec) { s.InitialDelay = -time.Second },
		"Period: 0s: must be more than 0":          func(s *Spec) { s.Period = 0 },
		"Timeout: -1s: must be more than 0":        func(s *Spec) { s.Timeout = -time.Second },
		"SuccessThreshold: 0: must be more than 0": func(s *Spec) { s.SuccessThreshold = 0 },
		"FailureThreshold: 0: must be more than 0": func(s *Spec) { s.FailureThreshold = 0 },
		"Grace: -1s: must be at least 0":           func(s *Spec) { s.Grace = &negative },
	} {
		s := every(time.Second)
		edit(s)
		if err := s.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTally(t *testing.T) {
	for name, tc := range map[string]struct {
		typ     Type
		s, f    int
		results string // s, w, f, u
		counted string // after each
	}{
		"liveness begins as a success":     {Liveness, 1, 3, "ffsfff", "sssssf"},
		"readiness begins as a failure":    {Readiness, 2, 2, "sssffss", "fsssffs"},
		"startup begins as unknown":        {Startup, 1, 2, "ufus", "uuus"},
		"unknown neither counts nor clear": {Liveness, 1, 2, "fuuf", "sssf"},
		"a warning is a success":           {Readiness, 2, 1, "swf", "fsf"},
		"successes clear failures":         {Liveness, 1, 2, "fsfsf", "sssss"},
		"startup fails":                    {Startup, 1, 2, "ff", "uf"},
	} {
		letters := map[byte]Result{'s': Success, 'w': Warning, 'f': Failure, 'u': Unknown}
		tally, got := initial(tc.typ), ""
		for i := range len(tc.results) {
			tally = tally.add(letters[tc.results[i]], &Spec{SuccessThreshold: tc.s, FailureThreshold: tc.f})
			got += tally.Value.String()[:1]
		}
		if got != tc.counted {
			t.Errorf("%s: %s count as %s, want %s", name, tc.results, got, tc.counted)
		}
		if most := max(tc.s, tc.f); tally.Count > most {
			t.Errorf("%s: the count %d grows beyond the threshold %d", name, tally.Count, most)
		}
	}
}

func TestNextCheck(t *testing.T) {
	base := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		due, began, ended float64 // seconds after base
		result            Result
		gap               float64
		want              float64
	}{
		"in time":                       {0, 0, 1, Success, 10, 10},
		"the phase is kept":             {0, 3, 4, Success, 10, 10},
		"a failure counts from when":    {0, 3, 4, Failure, 10, 13},
		"longer than the period":        {0, 0, 11.5, Success, 10, 20},
		"longer than two":               {0, 0, 25, Success, 10, 30},
		"a tick that has just passed":   {0, 0, 10.5, Failure, 10, 10},
		"the second has just passed":    {0, 0, 20.5, Success, 10, 20},
		"a shorter gap":                 {0, 0, 1, Success, 4, 4},
		"a gap that the check outlasts": {0, 0, 2, Success, 0.5, 10.5},
		"a longer check that failed":    {0, 1, 15, Failure, 10, 21},
	} {
		at := func(s float64) time.Time { return base.Add(time.Duration(s * float64(time.Second))) }
		got := nextCheck(every(10*time.Second), checkTimes{at(tc.due), at(tc.began), at(tc.ended)}, tc.result, time.Duration(tc.gap*float64(time.Second)))
		if !got.Equal(at(tc.want)) {
			t.Errorf("%s: %v after the start, want %v s", name, got.Sub(base), tc.want)
		}
	}
}

func TestFirstCheck(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		started     time.Time
		delay, wait time.Duration
		want        time.Duration // after now
	}{
		"at once":                       {now, 0, 0, 0},
		"an unknown start is now":       {time.Time{}, 5 * time.Second, 0, 5 * time.Second},
		"the delay is from the start":   {now.Add(-2 * time.Second), 5 * time.Second, 0, 3 * time.Second},
		"the delay is over":             {now.Add(-time.Hour), 5 * time.Second, 0, 0},
		"a start that is still to come": {now.Add(time.Hour), 5 * time.Second, 0, 5 * time.Second},
		"restored":                      {now.Add(-time.Hour), 5 * time.Second, time.Second / 2, time.Second / 2},
	} {
		s := every(time.Second)
		s.InitialDelay = tc.delay
		if got := firstCheck(s, began(tc.started, now), now, tc.wait).Sub(now); got != tc.want {
			t.Errorf("%s: %v from now, want %v", name, got, tc.want)
		}
	}
}

// TestShareIsEven: in each tenth there are about a tenth of the probes.
func TestShareIsEven(t *testing.T) {
	var tenths [10]int
	for i := range 10_000 {
		tenths[int(10*shareOf("uid", time.Duration(i).String(), Readiness))]++
	}
	for i, n := range tenths {
		if n < 900 || n > 1100 {
			t.Errorf("%d of 10000 in tenth %d", n, i)
		}
	}
	if shareOf("a", "b", Liveness) != shareOf("a", "b", Liveness) || shareOf("a", "b", Liveness) == shareOf("a", "b", Readiness) {
		t.Error("not a function of uid, name and type")
	}
}

func TestSavedIsSmallJSON(t *testing.T) {
	in := []Saved{{"abc", map[Type]Tally{Liveness: {Success, Failure, 2}}}}
	text, err := json.Marshal(in)
	if want := `[{"id":"abc","probes":{"Liveness":{"value":"success","last":"failure","count":2}}}]`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	var out []Saved
	if err := json.Unmarshal(text, &out); err != nil || out[0].Probes[Liveness] != in[0].Probes[Liveness] {
		t.Errorf("read back: %v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`[{"id":"abc","probes":{"Liveness":{"value":"perhaps"}}}]`), &out); err == nil {
		t.Error("a result that there is not was read")
	}
}
