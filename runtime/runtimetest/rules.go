package runtimetest

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"nodekit.dev/runtime"
)

// Rule names one thing that a sound agent never does.
type Rule string

// The rules of a World.
const (
	// RuleSandboxOverRunning: a sandbox was stopped or removed while a
	// container ran in it. Fine for a sandbox that is not ready.
	RuleSandboxOverRunning Rule = "sandbox-over-running"
	// RuleRemoveReadySandbox: a sandbox was removed without a stop before.
	RuleRemoveReadySandbox Rule = "remove-ready-sandbox"
	// RuleRemoveRunning: a running container was removed.
	RuleRemoveRunning Rule = "remove-running"
	// RuleDeadSandbox: a container was created or started in a sandbox that
	// the agent had stopped, or that it knew to be dead for over 10 s.
	RuleDeadSandbox Rule = "dead-sandbox"
	// RuleForeignSandbox: a container was created in the sandbox of another pod.
	RuleForeignSandbox Rule = "foreign-sandbox"
	// RuleTwoCopies: two containers of one name ran in a pod.
	RuleTwoCopies Rule = "two-copies"
	// RuleTwoSandboxes: two sandboxes of one UID were ready.
	RuleTwoSandboxes Rule = "two-sandboxes"
	// RuleAttempt: the attempt of a container or sandbox is not above those of
	// its name that still exist.
	RuleAttempt Rule = "attempt"
	// RuleStartAfterStop: something was made for a pod after Forbid.
	RuleStartAfterStop Rule = "start-after-stop"
	// RuleStartTwice: a container was started that is not in state created.
	RuleStartTwice Rule = "start-twice"
	// RuleImageMissing: a container was created from an image that is not there.
	RuleImageMissing Rule = "image-missing"
	// RuleImageInUse: an image was removed that is pinned or used by a container.
	RuleImageInUse Rule = "image-in-use"
	// RuleGraceGrew: a stop gave a container more time than one before it.
	RuleGraceGrew Rule = "grace-grew"
	// RuleStock: a stock label or annotation is missing or wrong.
	RuleStock Rule = "stock-labels"
	// RuleCgroupParent: a sandbox's cgroup is not named as the driver names them.
	RuleCgroupParent Rule = "cgroup-parent"
	// RuleAmbient: add_ambient_capabilities is set; the stock kubelet never does.
	RuleAmbient Rule = "ambient-capabilities"
	// RuleUnknownID: a call named an ID that never existed.
	RuleUnknownID Rule = "unknown-id"
	// RuleLeak: something is left at CheckEmpty.
	RuleLeak Rule = "leak"
	// RuleAlphaField: a v1alpha2 call carries a field that only v1 has.
	RuleAlphaField Rule = "v1alpha2-field"
)

// deadSandboxPatience is how long an agent that saw a sandbox dead may still
// have calls for it under way.
const deadSandboxPatience = 10 * time.Second

// Violation is one broken rule.
type Violation struct {
	Rule                 Rule
	Namespace, Name, UID string // of the pod; empty for images
	Container            string // empty for the pod as a whole
	Text                 string
}

// String is what the test is told.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "runtimetest: rule %s broken", v.Rule)
	if v.UID != "" || v.Name != "" {
		fmt.Fprintf(&b, " by pod %s/%s (UID %s)", v.Namespace, v.Name, v.UID)
	}
	if v.Container != "" {
		fmt.Fprintf(&b, " container %s", v.Container)
	}
	return b.String() + ": " + v.Text
}

// Violations are the rules broken so far, oldest first.
func (w *World) Violations() []Violation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Violation(nil), w.violations...)
}

// CheckEmpty reports each sandbox and container that is left, as RuleLeak.
func (w *World) CheckEmpty() {
	w.report.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uid := range w.uidsLocked() {
		p := w.pods[uid]
		for _, s := range p.sandboxes {
			w.violateLocked(RuleLeak, p, "", "sandbox %s (attempt %d, ready %t) is left", s.id, s.cfg.Attempt, s.ready)
		}
		for _, c := range p.containers {
			w.violateLocked(RuleLeak, p, c.cfg.Name, "container %s (attempt %d, %s) is left", c.id, c.cfg.Attempt, c.state)
		}
	}
}

func (w *World) violateLocked(rule Rule, p *pod, container, format string, args ...any) {
	w.report.Helper()
	if w.allowed[rule] {
		return
	}
	v := Violation{Rule: rule, Container: container, Text: fmt.Sprintf(format, args...)}
	if p != nil {
		v.Namespace, v.Name, v.UID = p.namespace, p.name, p.uid
	}
	w.violations = append(w.violations, v)
	w.report.Errorf("%s", v)
}

// existedLocked says whether an ID was ever given out.
func (w *World) existedLocked(id string) bool {
	_, number, ok := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	return ok && err == nil && n > 0 && n <= w.made
}

// stockSandbox lists what is wrong with the labels of a sandbox.
func stockSandbox(c runtime.SandboxConfig) []string {
	return mismatches(c.Labels, "label", map[string]string{
		runtime.LabelPodName:      c.Name,
		runtime.LabelPodNamespace: c.Namespace,
		runtime.LabelPodUID:       c.UID,
	})
}

// stockContainer lists what is wrong with the labels and annotations of a
// container of the pod. What the stock kubelet sets only for some pods (grace
// periods, preStop, ports) is not asked for.
func stockContainer(pod runtime.SandboxConfig, c runtime.ContainerConfig) []string {
	wrong := mismatches(c.Labels, "label", map[string]string{
		runtime.LabelPodName:       pod.Name,
		runtime.LabelPodNamespace:  pod.Namespace,
		runtime.LabelPodUID:        pod.UID,
		runtime.LabelContainerName: c.Name,
	})
	for _, key := range []string{
		runtime.AnnotationContainerHash,
		runtime.AnnotationRestartCount,
		runtime.AnnotationTerminationMessagePath,
		runtime.AnnotationTerminationMessagePolicy,
	} {
		if c.Annotations[key] == "" {
			wrong = append(wrong, "annotation "+key+" is missing")
		}
	}
	restarts := c.Annotations[runtime.AnnotationRestartCount]
	if _, err := strconv.Atoi(restarts); restarts != "" && err != nil {
		wrong = append(wrong, fmt.Sprintf("annotation %s is %q, not a number", runtime.AnnotationRestartCount, restarts))
	}
	return wrong
}

func mismatches(have map[string]string, kind string, want map[string]string) []string {
	var wrong []string
	for key, value := range want {
		got, ok := have[key]
		switch {
		case !ok:
			wrong = append(wrong, kind+" "+key+" is missing")
		case got != value:
			wrong = append(wrong, fmt.Sprintf("%s %s is %q, not %q", kind, key, got, value))
		}
	}
	sort.Strings(wrong)
	return wrong
}
