package admission

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// Config says how to decide. The zero value is the stock kubelet's.
type Config struct {
	// OS is this node's, such as "linux"; empty: that of this program.
	OS string
	// NodeName is this node's; empty: whom a pod is for is not looked at.
	NodeName string
	// CompareTaints (gate TaintTolerationComparisonOperators, Alpha) lets
	// tolerations compare numbers.
	CompareTaints bool
	// Features are those that the node has declared.
	Features Features
	// Retry is how soon a pod that was told "later" is asked for again where no
	// news of what it waits for can be had. 0 means 10 s.
	Retry time.Duration
}

// Nodes is where the node's own object comes from. Its methods may block until
// ctx ends and are called concurrently.
type Nodes interface {
	// Node is the node as last known. Until the API server has told, it is what
	// the agent would register, and known is false.
	Node(ctx context.Context) (n *corev1.Node, known bool, err error)
	// Fresh reads it from the API server.
	Fresh(ctx context.Context) (*corev1.Node, error)
}

// Pods is the node's table of pods; *node.Node fits. It must not block.
type Pods interface {
	Pods() []node.PodView
}

// New makes the admitters, in order. Without nodes (a standalone agent) nothing
// is asked of the node's labels and taints; pods is required.
func New(cfg Config, nodes Nodes, pods Pods) ([]node.Ordered[node.Admitter], error) {
	if pods == nil {
		return nil, errors.New("admission: pods must not be nil")
	}
	if cfg.Retry < 0 {
		return nil, fmt.Errorf("admission: Retry %v is negative", cfg.Retry)
	}
	if cfg.Retry == 0 {
		cfg.Retry = 10 * time.Second
	}
	if cfg.OS == "" {
		cfg.OS = goruntime.GOOS
	}
	chain := newChain()
	chain.add("os", osLabel{cfg.OS})
	if nodes != nil {
		chain.add("node-affinity", affinity{nodes, cfg.Retry})
	}
	chain.add("node-name", nodeName{cfg.NodeName})
	chain.add("node-ports", newPorts(pods))
	if nodes != nil {
		chain.add("taints", taints{nodes, cfg.CompareTaints})
	}
	if cfg.Features.Version != "" {
		features, err := newFeatures(cfg.Features)
		if err != nil {
			return nil, err
		}
		chain.add("features", features)
	}
	return chain.members, nil
}

// chain puts each admitter behind the one before.
type chain struct{ members []node.Ordered[node.Admitter] }

func newChain() *chain { return &chain{} }

func (c *chain) add(name string, a node.Admitter) {
	member := node.Ordered[node.Admitter]{Name: name, Value: living{a}}
	if n := len(c.members); n > 0 {
		member.After = []string{c.members[n-1].Name}
	}
	c.members = append(c.members, member)
}

// living lets pods through that are over: they hold nothing and will not start,
// whatever is said of them here.
type living struct{ node.Admitter }

func (l living) Admit(ctx context.Context, req node.AdmitRequest) (lifecycle.Admission, error) {
	if req.Pod == nil || over(req.Pod) {
		return admit(), nil
	}
	return l.Admitter.Admit(ctx, req)
}

func over(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func admit() lifecycle.Admission { return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit} }

// predicate is a rejection in the words that the scheduler's predicates have.
func predicate(name, why string) lifecycle.Admission {
	return lifecycle.Admission{
		Verdict: lifecycle.VerdictReject, Reason: name, Message: fmt.Sprintf("Predicate %s failed: %s", name, why),
	}
}

// later has the reason of the rejection that may come of it.
func later(reason, message string, again time.Time) lifecycle.Admission {
	return lifecycle.Admission{Verdict: lifecycle.VerdictLater, Reason: reason, Message: message, RetryAt: again}
}
