package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// policyOf is the restart policy that counts for one container.
func policyOf(spec *corev1.Container, pod corev1.RestartPolicy, rules Rules) corev1.RestartPolicy {
	if rules.RestartRules && spec.RestartPolicy != nil {
		return corev1.RestartPolicy(*spec.RestartPolicy)
	}
	if pod == "" {
		return corev1.RestartPolicyAlways
	}
	return pod
}

// matchedRule is the action of the first rule that fits the exit code; empty
// when none does.
func matchedRule(spec *corev1.Container, exit int32, rules Rules) corev1.ContainerRestartRuleAction {
	if !rules.RestartRules {
		return ""
	}
	for _, rule := range spec.RestartPolicyRules {
		if rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers && !rules.RestartAllContainers {
			continue
		}
		if rule.ExitCodes != nil && exitFits(*rule.ExitCodes, exit) {
			return rule.Action
		}
	}
	return ""
}

func exitFits(on corev1.ContainerRestartRuleOnExitCodes, exit int32) bool {
	listed := slices.Contains(on.Values, exit)
	switch on.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	}
	return false
}

// restartAfter says whether a main or plain init container that ended with
// this exit code runs again. An init container that succeeded never does.
func restartAfter(spec *corev1.Container, isInit bool, pod corev1.RestartPolicy, exit int32, rules Rules) bool {
	if matchedRule(spec, exit, rules) != "" {
		return true
	}
	if isInit && exit == 0 {
		return false
	}
	switch policyOf(spec, pod, rules) {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exit != 0
	case corev1.RestartPolicyAlways:
	}
	return true
}

// nextBackoff is the wait after one more end in a row, when the wait before was
// last: base after none, then doubling up to max. A run of reset or more starts
// again, and then the first restart is at once.
func nextBackoff(last, ran time.Duration, rules Rules) time.Duration {
	switch {
	case ran >= rules.BackoffReset:
		return 0
	case last <= 0:
		return min(rules.BackoffBase, rules.BackoffMax)
	}
	return min(2*last, rules.BackoffMax)
}

// backoffAfterLoss is the wait when nobody remembers the last one: it is
// rebuilt from the restart count of the run that ended.
func backoffAfterLoss(restarts int32, ran time.Duration, rules Rules) time.Duration {
	if restarts == 0 || ran >= rules.BackoffReset {
		return 0
	}
	return doubled(rules.BackoffBase, int(restarts)-1, rules.BackoffMax)
}

// doubled is d doubled n times, at most limit.
func doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	for ; n > 0 && d < limit; n-- {
		d *= 2
	}
	return min(d, max(limit, 0))
}
