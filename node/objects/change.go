package objects

import "k8s.io/apimachinery/pkg/types"

// Change says that an object which the pod of that UID refers to is not what
// it was: it changed, appeared or vanished, or could be read at last.
type Change struct{ UID types.UID }

// ChangeOf is the Change of a pod.
func ChangeOf(uid types.UID) Change { return Change{UID: uid} }
