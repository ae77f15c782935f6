package probe

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Spec says how one probe is made. Unlike the API's, its times may be shorter
// than a second. A pod's comes from [SpecOf].
type Spec struct {
	// Handler is what is checked.
	Handler corev1.ProbeHandler
	// Kind chooses the check. Empty: KindOf(Handler).
	Kind Kind
	// InitialDelay is how long after the container's start the first check is.
	InitialDelay time.Duration
	// Period is the time from check to check, Timeout what one may take.
	Period, Timeout time.Duration
	// SuccessThreshold and FailureThreshold are how many equal results in a row
	// count.
	SuccessThreshold, FailureThreshold int
	// Grace is terminationGracePeriodSeconds of the probe (KEP-2238); nil: the
	// pod's. A readiness probe has none.
	Grace *time.Duration
}

// SpecOf is the API's probe, with the API's defaults for what is not set:
// 10 s of period, 1 s of timeout, one success, three failures.
func SpecOf(p *corev1.Probe) Spec {
	seconds := func(n, fallback int32) time.Duration {
		return time.Duration(orDefault(n, fallback)) * time.Second
	}
	s := Spec{
		Handler:          p.ProbeHandler,
		InitialDelay:     seconds(p.InitialDelaySeconds, 0),
		Period:           seconds(p.PeriodSeconds, 10),
		Timeout:          seconds(p.TimeoutSeconds, 1),
		SuccessThreshold: int(orDefault(p.SuccessThreshold, 1)),
		FailureThreshold: int(orDefault(p.FailureThreshold, 3)),
	}
	if p.TerminationGracePeriodSeconds != nil {
		grace := time.Duration(*p.TerminationGracePeriodSeconds) * time.Second
		s.Grace = &grace
	}
	return s
}

func orDefault(n, fallback int32) int32 {
	if n == 0 {
		return fallback
	}
	return n
}

// Validate says what is wrong, by field.
func (s Spec) Validate() error {
	var errs []error
	want := func(ok bool, field string, value any, rule string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %v: must be %s", field, value, rule))
		}
	}
	want(s.kind() != "", "Handler", "none", "set, or Kind")
	want(s.InitialDelay >= 0, "InitialDelay", s.InitialDelay, "at least 0")
	want(s.Period > 0, "Period", s.Period, "more than 0")
	want(s.Timeout > 0, "Timeout", s.Timeout, "more than 0")
	want(s.SuccessThreshold > 0, "SuccessThreshold", s.SuccessThreshold, "more than 0")
	want(s.FailureThreshold > 0, "FailureThreshold", s.FailureThreshold, "more than 0")
	if s.Grace != nil {
		want(*s.Grace >= 0, "Grace", *s.Grace, "at least 0")
	}
	return errors.Join(errs...)
}

func (s Spec) kind() Kind {
	if s.Kind != "" {
		return s.Kind
	}
	return KindOf(s.Handler)
}
