package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/runtime"
)

// AnnotationContent holds a hash of the manifest that a static pod was made
// from, without where it was found. It is on the sandbox too, so that the pod
// is known again when its manifest moved, or an earlier agent gave the UID.
const AnnotationContent = "nodekit.dev/config.content"

// origin says where a pod comes from.
type origin struct {
	source   string // annotation kubernetes.io/config.source
	location string // file or URL, a part of the UID
	// static pods get the node's name behind theirs; file pods tolerate every
	// NoExecute taint.
	suffix    bool
	tolerates bool
}

// contentHash is the hash of a decoded manifest: comments, the order of keys
// and fields that hold nothing do not matter, everything else does.
func contentHash(pod *corev1.Pod) (string, error) {
	bare := *pod
	bare.Status = corev1.PodStatus{}
	written, err := json.Marshal(&bare)
	if err != nil {
		return "", fmt.Errorf("not a pod: %w", err)
	}
	// Which empty fields are written changes with the version of the API's
	// types; no upgrade of the agent may restart a pod for that.
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return "", fmt.Errorf("not a pod: %w", err)
	}
	canonical, err := json.Marshal(prune(tree))
	if err != nil {
		return "", fmt.Errorf("not a pod: %w", err)
	}
	return hexSum(string(canonical)), nil
}

// prune drops members that are null, {} or [], from the innermost on.
func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if member = prune(member); empty(member) {
				delete(v, key)
			} else {
				v[key] = member
			}
		}
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	}
	return v
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// ownUID is the UID of a pod whose manifest sets none: 32 hex digits, as the
// stock kubelet's, though not the same ones (its hash is made from types that
// are not published).
func ownUID(content, nodeName string, o origin) types.UID {
	return types.UID(hexSum("nodekit/1", content, nodeName, o.source, o.location))
}

func hexSum(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// fullName sets namespace and name as the node will know them.
func fullName(pod *corev1.Pod, nodeName string, o origin) {
	if pod.Namespace == "" {
		pod.Namespace = corev1.NamespaceDefault
	}
	if o.suffix && pod.Name != "" {
		pod.Name += "-" + strings.ToLower(nodeName)
	}
}

// stamp gives a pod that has its UID everything else that tells where it
// comes from. seen is in RFC3339Nano.
func stamp(pod *corev1.Pod, nodeName, content, seen string, o origin) {
	if pod.Name == "" {
		pod.Name = string(pod.UID)
		fullName(pod, nodeName, o)
	}
	notes := map[string]string{}
	for k, v := range pod.Annotations {
		notes[k] = v
	}
	delete(notes, runtime.AnnotationConfigMirror) // this is the pod, not its mirror
	notes[runtime.AnnotationConfigSource] = o.source
	notes[runtime.AnnotationConfigHash] = string(pod.UID)
	notes[runtime.AnnotationConfigSeen] = seen
	notes[AnnotationContent] = content
	pod.Annotations = notes
	pod.Spec.NodeName = nodeName
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	if o.tolerates {
		tolerateAll(pod)
	}
}

// tolerateAll keeps taints from driving a file's pod away.
func tolerateAll(pod *corev1.Pod) {
	all := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	for _, t := range pod.Spec.Tolerations {
		if t.MatchToleration(&all) {
			return
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, all)
}
