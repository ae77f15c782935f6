package csi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The keys of a volume's context that drivers read.
const (
	infoPrefix = "csi.storage.k8s.io/"
	tokensKey  = infoPrefix + "serviceAccount.tokens"
)

// volumeContext is the volume's attributes, and what the driver wants to know of
// the pod.
func volumeContext(v described, pol policy, pod *corev1.Pod) map[string]string {
	out := maps.Clone(v.attributes)
	if !pol.podInfo {
		return out
	}
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, map[string]string{
		infoPrefix + "pod.name":            pod.Name,
		infoPrefix + "pod.namespace":       pod.Namespace,
		infoPrefix + "pod.uid":             string(pod.UID),
		infoPrefix + "serviceAccount.name": pod.Spec.ServiceAccountName,
		infoPrefix + "ephemeral":           strconv.FormatBool(v.ephemeral()),
	})
	return out
}

// tokenText are the tokens that the driver asks for, as it reads them; empty:
// none.
func (p *Plugin) tokenText(ctx context.Context, pol policy, pod *corev1.Pod) (string, error) {
	if len(pol.tokens) == 0 {
		return "", nil
	}
	if p.parts.Tokens == nil {
		return "", errors.New("the CSI driver asks for service account tokens, and this agent has no API server to issue them")
	}
	type entry struct {
		Token   string      `json:"token"`
		Expires metav1.Time `json:"expirationTimestamp"`
	}
	all := map[string]entry{}
	for _, ask := range pol.tokens {
		req := TokenRequest{
			PodUID: pod.UID, PodName: pod.Name, Namespace: pod.Namespace,
			ServiceAccount: pod.Spec.ServiceAccountName, Audience: ask.Audience,
		}
		if ask.ExpirationSeconds != nil {
			req.Expiration = time.Duration(*ask.ExpirationSeconds) * time.Second
		}
		token, err := p.parts.Tokens.Token(ctx, req)
		if err != nil {
			return "", err
		}
		all[ask.Audience] = entry{token.Value, metav1.Time{Time: token.Expiration}}
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// secret reads one; nil without a reference.
func (p *Plugin) secret(ctx context.Context, uid string, ref *corev1.SecretReference) (map[string]string, error) {
	if ref == nil {
		return nil, nil
	}
	if p.parts.Secrets == nil {
		return nil, fmt.Errorf("secret %s/%s: this agent has no source of Secrets", ref.Namespace, ref.Name)
	}
	secret, err := p.parts.Secrets.Secret(ctx, types.UID(uid), ref.Namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	out := map[string]string{}
	for key, value := range secret.Data {
		out[key] = string(value)
	}
	return out, nil
}
