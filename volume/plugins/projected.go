package plugins

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/tasks"
	"nodekit.dev/volume"
)

// projectedPlugin gives projected volumes: several sources in one directory in
// memory. Where two sources name one file, the later one wins.
type projectedPlugin struct{ Sources }

func (projectedPlugin) Name() string { return "kubernetes.io/projected" }

func (projectedPlugin) Supports(s volume.Source) bool { return s.Volume.Projected != nil }

func (p projectedPlugin) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	return p.inMemory().mount(req, func() (collected, error) { return p.project(ctx, req) })
}

func (p projectedPlugin) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	return p.inMemory().mounted(req)
}

func (p projectedPlugin) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	return p.inMemory().unmount(ctx, req)
}

// projection is one projected volume that is being put together.
type projection struct {
	Sources
	req  volume.MountRequest
	mode *int32 // of the volume
	// owner is the user of files whose source asks for none; nil: the volume
	// does not either.
	owner *int64
}

func (p projectedPlugin) project(ctx context.Context, req volume.MountRequest) (collected, error) {
	pr := projection{Sources: p.Sources, req: req, mode: req.Volume.Projected.DefaultMode, owner: req.Volume.Projected.DefaultUser}
	parts, err := pr.collect(ctx, req.Volume.Projected.Sources)
	if err != nil {
		return collected{}, err
	}
	all := collected{files: payload{}}
	for _, part := range parts {
		maps.Copy(all.files, part.files)
		all.refreshAt = earlier(all.refreshAt, part.refreshAt)
	}
	return all, nil
}

// collect asks all sources at once: most of them wait for the API server.
func (p projection) collect(ctx context.Context, sources []corev1.VolumeProjection) ([]collected, error) {
	parts, errs := make([]collected, len(sources)), make([]error, len(sources))
	asking := tasks.New(ctx)
	for i, source := range sources {
		asking.Go("projected-source", func(ctx context.Context) error {
			parts[i], errs[i] = p.source(ctx, i, source)
			return nil
		})
	}
	if err := asking.Wait(); err != nil { // a source that panics
		return nil, err
	}
	return parts, joined(slices.DeleteFunc(errs, func(err error) bool { return err == nil }))
}

func (p projection) source(ctx context.Context, index int, s corev1.VolumeProjection) (got collected, err error) {
	switch {
	case s.Secret != nil:
		got.files, err = p.secretFiles(ctx, p.req.Pod, s.Secret.Name, keyed{
			items: s.Secret.Items, mode: p.mode, user: p.user(p.owner), optional: isTrue(s.Secret.Optional),
		})
	case s.ConfigMap != nil:
		got.files, err = p.configMapFiles(ctx, p.req.Pod, s.ConfigMap.Name, keyed{
			items: s.ConfigMap.Items, mode: p.mode, user: p.user(p.owner), optional: isTrue(s.ConfigMap.Optional),
		})
	case s.DownwardAPI != nil:
		got.files, err = p.downwardFiles(p.req.Pod, s.DownwardAPI.Items, p.mode, p.user(p.owner))
	case s.ServiceAccountToken != nil:
		return p.token(ctx, s.ServiceAccountToken)
	case s.ClusterTrustBundle != nil:
		got.files, err = p.trustBundle(ctx, s.ClusterTrustBundle)
	case s.PodCertificate != nil:
		got.files, err = p.podCertificate(ctx, index, s.PodCertificate)
	}
	return got, err
}

// defaultExpiration is what the API server fills in.
const defaultExpiration = time.Hour

func (p projection) token(ctx context.Context, s *corev1.ServiceAccountTokenProjection) (collected, error) {
	if p.Tokens == nil {
		return collected{}, errNoTokens
	}
	req := TokenRequest{
		PodUID: p.req.Pod.UID, PodName: p.req.Pod.Name, Namespace: p.req.Pod.Namespace,
		ServiceAccount: p.req.Pod.Spec.ServiceAccountName,
		Audience:       s.Audience, Expiration: defaultExpiration,
	}
	if s.ExpirationSeconds != nil {
		req.Expiration = time.Duration(*s.ExpirationSeconds) * time.Second
	}
	token, err := p.Tokens.Token(ctx, req)
	if err != nil {
		return collected{}, err
	}
	return collected{files: payload{s.Path: p.private([]byte(token.Value), s.User)}, refreshAt: token.RefreshAt}, nil
}

func (p projection) podCertificate(ctx context.Context, index int, s *corev1.PodCertificateProjection) (payload, error) {
	if p.PodCertificates == nil {
		return nil, errNoPodCerts
	}
	key, chain, err := p.PodCertificates.PodCertificate(ctx, p.req.Pod, p.req.Volume.Name, index)
	if err != nil {
		return nil, err
	}
	out := payload{}
	for path, data := range map[string][]byte{
		s.CredentialBundlePath: slices.Concat(key, chain),
		s.KeyPath:              key,
		s.CertificateChainPath: chain,
	} {
		if path != "" {
			out[path] = p.private(data, s.User)
		}
	}
	return out, nil
}

// private is a file for the pod's own user, or whom the source or the volume
// asks for: where all containers run as one, or share a group, nobody else can
// read it.
func (p projection) private(data []byte, user *int64) file {
	f := file{data: data, mode: modeOr(p.mode, defaultMode), user: p.user(p.owner)(user)}
	if f.user == nil {
		f.user = podUser(p.req.Pod)
	}
	if f.user != nil || fsGroup(p.req.Pod) != nil {
		f.mode = 0o600 // the group's right to read comes with its ownership
	}
	return f
}

// podUser is the user that all containers of the pod run as; nil: they differ,
// or some image decides.
func podUser(pod *corev1.Pod) *int64 {
	var podWide *int64
	if pod.Spec.SecurityContext != nil {
		podWide = pod.Spec.SecurityContext.RunAsUser
	}
	var user *int64
	for _, own := range securityContexts(pod) {
		runs := podWide
		if own != nil && own.RunAsUser != nil {
			runs = own.RunAsUser
		}
		if runs == nil || user != nil && *user != *runs {
			return nil
		}
		user = runs
	}
	return user
}

func securityContexts(pod *corev1.Pod) []*corev1.SecurityContext {
	var all []*corev1.SecurityContext
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		all = append(all, c.SecurityContext)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, c.SecurityContext)
	}
	return all
}

// earlier is the first of two times, where zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
