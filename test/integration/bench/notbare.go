package bench

import (
	"context"
	"slices"
	"strings"
	"sync"

	"nodekit.dev/node"
	"nodekit.dev/runtime"
)

// bareKind is the kind of the bare pods' UIDs.
const bareKind = "bare"

// withoutBarePods hides the bare pods from an agent, which would take them for
// pods that nobody wants, and remove them.
func withoutBarePods(w node.Watcher) node.Watcher { return &notBare{Watcher: w} }

type notBare struct {
	node.Watcher
	once  sync.Once
	hints chan runtime.Hint
}

func isBare(uid string) bool { return strings.HasPrefix(uid, kindOf(uidOf(bareKind, 0))) }

// List lists all but the bare pods.
func (n *notBare) List(ctx context.Context) ([]runtime.Pod, error) {
	pods, err := n.Watcher.List(ctx)
	return slices.DeleteFunc(pods, func(p runtime.Pod) bool { return isBare(p.UID) }), err
}

// Hints passes on all hints but those at bare pods. The goroutine lives as
// long as the process: an agent has no end that a watcher could see.
func (n *notBare) Hints() <-chan runtime.Hint {
	n.once.Do(func() {
		n.hints = make(chan runtime.Hint)
		go func() {
			for hint := range n.Watcher.Hints() {
				if !isBare(hint.UID) {
					n.hints <- hint
				}
			}
		}()
	})
	return n.hints
}
