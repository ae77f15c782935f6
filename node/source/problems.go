package source

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// report tells about problems that are new, changed or over, each once.
func (k *keeper) report(clashes map[string]string) {
	now := time.Now()
	current := map[problemKey]Problem{}
	add := func(location string, reason Reason, message string, pod *corev1.Pod) {
		current[problemKey{location, reason}] = Problem{
			Source: k.name, Location: location, Reason: reason, Message: message, At: now, Pod: pod,
		}
	}
	for key, it := range k.items {
		for reason, message := range it.problems {
			add(key, reason, message, it.pod)
		}
	}
	for key, message := range clashes {
		add(key, ReasonDuplicate, message, nil)
	}
	k.reportAll(current)
}

// unreachable tells that the source as a whole can not be read.
func (k *keeper) unreachable(location string, reason Reason, err error) {
	current := maps.Clone(k.reported)
	current[problemKey{location, reason}] = Problem{
		Source: k.name, Location: location, Reason: reason, Message: err.Error(), At: time.Now(),
	}
	k.reportAll(current)
}

func (k *keeper) reportAll(current map[problemKey]Problem) {
	for _, key := range sortedProblems(current) {
		problem := current[key]
		if old, known := k.reported[key]; known && old.Message == problem.Message {
			current[key] = old
			continue
		}
		k.cfg.Log.Warn("static pod source has a problem", "source", k.name, "location", problem.Location,
			"reason", string(problem.Reason), "message", problem.Message, "pod", podName(problem.Pod))
		if k.cfg.Observer.Problem != nil {
			k.cfg.Observer.Problem(problem)
		}
	}
	for _, key := range sortedProblems(k.reported) {
		if _, still := current[key]; still {
			continue
		}
		old := k.reported[key]
		k.cfg.Log.Info("static pod source's problem is over", "source", k.name, "location", old.Location, "reason", string(old.Reason))
		if k.cfg.Observer.Mended != nil {
			k.cfg.Observer.Mended(old)
		}
	}
	k.reported = current
}

// podName is the pod that runs on, for logs.
func podName(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.Namespace + "/" + pod.Name
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func sortedProblems(m map[problemKey]Problem) []problemKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b problemKey) int {
		return cmp.Or(cmp.Compare(a.location, b.location), cmp.Compare(a.reason, b.reason))
	})
}
