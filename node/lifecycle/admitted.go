package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ConditionAdmitted is False, with the admitter's reason and message, while a
// pod waits because an admitter said "later". A pod that is admitted at once
// has no such condition. It is nodekit's own: the stock kubelet's admission
// knows no later.
const ConditionAdmitted corev1.PodConditionType = "nodekit.dev/Admitted"

// addAdmitted tells what a pod waits for before it may start, and once told,
// what became of it.
func (d *decision) addAdmitted(s *corev1.PodStatus) {
	admission, old := d.in.Seen.Admission, d.oldCondition(ConditionAdmitted)
	switch {
	case d.mem.Phase == Queued && admission.Verdict == VerdictLater:
		d.setCondition(s, ConditionAdmitted, verdict{reason: admission.Reason, message: admission.Message})
	case old == nil:
	case admission.Verdict == VerdictAdmit:
		d.setCondition(s, ConditionAdmitted, verdict{met: true})
	default:
		d.setCondition(s, ConditionAdmitted, verdict{met: old.Status == corev1.ConditionTrue, reason: old.Reason, message: old.Message})
	}
}

// retryAt is when an action that failed may be tried again: when its back-off
// is over, or soon after news of what it may have failed for the lack of.
func (d *decision) retryAt(f Failure) time.Time {
	soon, news := f.At.Add(minRetry), d.in.Seen.NewsAt
	informed := !news.IsZero() && !news.Before(f.Began) && f.lacksSomething()
	if f.RetryAt.IsZero() || informed && f.RetryAt.After(soon) {
		return soon
	}
	return f.RetryAt
}

// reasonConfig is why a container can not even be described.
const reasonConfig = "CreateContainerConfigError"

// lacksSomething says that the action may have failed for an object that is not
// there yet. A pull is not among them: a ConfigMap that changes all the time
// must not wear down a registry.
func (f Failure) lacksSomething() bool {
	return f.Kind == Mount || f.Kind == StartContainer && f.Reason == reasonConfig
}
