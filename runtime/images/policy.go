package images

import "fmt"

// The pull policies of a container.
const (
	PullAlways       = "Always"
	PullIfNotPresent = "IfNotPresent"
	PullNever        = "Never"
)

// verdict is what a pull policy says about one image.
type verdict int

const (
	usePresent verdict = iota
	pullIt
	refuseAbsent
)

// judge applies a pull policy; an empty one is IfNotPresent.
func judge(policy string, present bool) (verdict, error) {
	switch policy {
	case PullAlways:
		return pullIt, nil
	case PullIfNotPresent, "":
		if present {
			return usePresent, nil
		}
		return pullIt, nil
	case PullNever:
		if present {
			return usePresent, nil
		}
		return refuseAbsent, nil
	}
	return refuseAbsent, fmt.Errorf("unknown image pull policy %q", policy)
}
