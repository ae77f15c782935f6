package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/internal/manifests"
	"nodekit.dev/node"
)

// keeper holds what a source last knew of each of its manifests. One goroutine
// owns it.
type keeper struct {
	cfg  Config
	name string
	// adopter answers for the present reading of the source; nil: none.
	adopter Adopter
	items   map[string]*item // by key: a file's path, or a list's pod
	// named holds the full names that were in an update, seen the moment each
	// UID was first met.
	named map[string]bool
	seen  map[string]string

	reported map[problemKey]Problem
	sent     []*corev1.Pod
	unclear  bool // as sent
	hasSent  bool
}

// item is one manifest.
type item struct {
	sum      [sha256.Size]byte
	pod      *corev1.Pod // of the last good content; nil: never
	problems map[Reason]string
}

type problemKey struct {
	location string
	reason   Reason
}

func newKeeper(cfg Config, name string) *keeper {
	return &keeper{
		cfg: cfg, name: name, adopter: cfg.Adopter, items: map[string]*item{}, named: map[string]bool{},
		seen: map[string]string{}, reported: map[problemKey]Problem{},
	}
}

// begin starts a reading of the source: what runs is looked up anew.
func (k *keeper) begin() {
	if l, ok := k.cfg.Adopter.(lister); ok {
		k.adopter = l.once()
	}
}

func (k *keeper) item(key string) *item {
	it := k.items[key]
	if it == nil {
		it = &item{}
		k.items[key] = it
	}
	return it
}

// failed records why a manifest can not be used; its pod stays.
func (k *keeper) failed(key string, reason Reason, err error) {
	it := k.item(key)
	it.sum = [sha256.Size]byte{}
	it.problems = map[Reason]string{reason: err.Error()}
}

// manifest takes the content of one manifest. An error means that it is not
// known whether the pod runs already: nothing may be sent now.
func (k *keeper) manifest(ctx context.Context, key string, data []byte, o origin) error {
	sum := sha256.Sum256(data)
	it := k.item(key)
	if it.sum == sum {
		return nil
	}
	d, err := decodePod(data)
	if err != nil {
		reason := ReasonInvalid
		if errors.Is(err, manifests.ErrTooLarge) {
			reason = ReasonTooLarge
		}
		k.failed(key, reason, err)
		it.sum = sum
		return nil
	}
	if err := k.pod(ctx, key, d, o); err != nil {
		return err
	}
	it.sum = sum
	return nil
}

// pod takes one decoded pod as the content of a manifest.
func (k *keeper) pod(ctx context.Context, key string, d decoded, o origin) error {
	it := k.item(key)
	content, err := contentHash(d.pod)
	if err != nil {
		k.failed(key, ReasonInvalid, err)
		return nil
	}
	if it.pod == nil || it.pod.Annotations[AnnotationContent] != content {
		pod, err := k.complete(ctx, d.pod, content, o)
		if err != nil {
			return err
		}
		if err := k.cfg.check(pod); err != nil {
			k.failed(key, ReasonInvalid, err)
			return nil
		}
		it.pod = pod
	}
	it.problems = map[Reason]string{}
	for i, w := range d.warnings {
		if i > 0 {
			w = it.problems[ReasonUnknownFields] + "; " + w
		}
		it.problems[ReasonUnknownFields] = w
	}
	return nil
}

// complete makes of a decoded pod what the node gets.
func (k *keeper) complete(ctx context.Context, in *corev1.Pod, content string, o origin) (*corev1.Pod, error) {
	pod := in.DeepCopy()
	fullName(pod, k.cfg.NodeName, o)
	if pod.UID == "" {
		pod.UID = ownUID(content, k.cfg.NodeName, o)
		if k.adopter != nil && pod.Name != "" {
			foreign := !k.named[pod.Namespace+"/"+pod.Name]
			uid, err := k.adopter.Adopt(ctx, adoptRequest(pod, content, o, foreign))
			if err != nil {
				return nil, err
			}
			if uid != "" {
				pod.UID = types.UID(uid)
			}
		}
	}
	uid := string(pod.UID)
	if k.seen[uid] == "" {
		k.seen[uid] = time.Now().Format(time.RFC3339Nano)
	}
	stamp(pod, k.cfg.NodeName, content, k.seen[uid], o)
	Default(pod)
	return pod, nil
}

// keep drops the manifests that are gone.
func (k *keeper) keep(keys []string) {
	for key := range k.items {
		if !slices.Contains(keys, key) {
			delete(k.items, key)
		}
	}
}

// pods returns the pods of all manifests in the order of their keys; of two
// with one name or UID the first.
func (k *keeper) pods() (pods []*corev1.Pod, clashes map[string]string) {
	taken := map[string]string{} // by name and by UID: whose it is
	clashes = map[string]string{}
	for _, key := range sortedKeys(k.items) {
		pod := k.items[key].pod
		if pod == nil {
			continue
		}
		name, uid := "pod "+pod.Namespace+"/"+pod.Name, "UID "+string(pod.UID)
		if first, ok := taken[name]; ok {
			clashes[key] = name + " is in " + first + " already"
			continue
		}
		if first, ok := taken[uid]; ok {
			clashes[key] = uid + " is in " + first + " already"
			continue
		}
		taken[name], taken[uid] = key, key
		pods = append(pods, pod)
	}
	return pods, clashes
}

// unread says that some manifest was never understood: it may be the one of a
// pod that an earlier agent started.
func (k *keeper) unread() bool {
	for _, it := range k.items {
		if it.pod == nil {
			return true
		}
	}
	return false
}

// changed returns the update to send, and whether it says anything else than
// the last one. What is returned counts as sent.
func (k *keeper) changed() (node.SourceUpdate, bool) {
	pods, clashes := k.pods()
	k.report(clashes)
	unclear := k.unread()
	if k.hasSent && k.unclear == unclear && slices.Equal(pods, k.sent) {
		return node.SourceUpdate{}, false
	}
	k.sent, k.unclear, k.hasSent = pods, unclear, true
	alive := map[string]string{}
	for _, pod := range pods {
		k.named[pod.Namespace+"/"+pod.Name] = true
		alive[string(pod.UID)] = k.seen[string(pod.UID)]
	}
	k.seen = alive
	return node.SourceUpdate{Source: k.name, Pods: slices.Clone(pods), Unclear: unclear}, true
}
