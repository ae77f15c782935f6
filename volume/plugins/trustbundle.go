package plugins

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// trustBundle reads the trust anchors of ClusterTrustBundles into one file.
func (p projection) trustBundle(ctx context.Context, s *corev1.ClusterTrustBundleProjection) (payload, error) {
	if p.TrustBundles == nil {
		return nil, errNoTrustBundles
	}
	bundles, err := p.trustBundles(ctx, s)
	if err != nil {
		return nil, err
	}
	return payload{s.Path: p.private(trustAnchors(bundles), s.User)}, nil
}

func (p projection) trustBundles(ctx context.Context, s *corev1.ClusterTrustBundleProjection) ([]string, error) {
	uid := p.req.Pod.UID
	switch {
	case s.Name != nil:
		bundle, err := p.TrustBundles.ClusterTrustBundle(ctx, uid, *s.Name)
		if err != nil && isNotFound(err) && isTrue(s.Optional) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("while getting ClusterTrustBundle: %w", err)
		}
		return []string{bundle}, nil
	case s.SignerName != nil:
		bundles, err := p.TrustBundles.ClusterTrustBundles(ctx, uid, *s.SignerName, s.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("while listing ClusterTrustBundles: %w", err)
		}
		if len(bundles) == 0 && !isTrue(s.Optional) {
			return nil, errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
		}
		return bundles, nil
	}
	return nil, errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
}

// trustAnchors are the certificates of all bundles, each once, without comments
// and headers. Their order means nothing; it is the same for the same set, so
// that a restart of the agent does not write the file anew.
func trustAnchors(bundles []string) []byte {
	anchors := map[string]bool{}
	for _, bundle := range bundles {
		rest := []byte(bundle)
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			anchors[string(block.Bytes)] = true
		}
	}
	var out bytes.Buffer
	for _, der := range slices.Sorted(maps.Keys(anchors)) {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(der)}))
	}
	return out.Bytes()
}
