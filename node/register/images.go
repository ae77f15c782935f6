package register

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

const (
	// imagesEvery is how often the runtime is asked for its images.
	imagesEvery = 30 * time.Second
	// maxImageNames is how many names of one image are told.
	maxImageNames = 5
)

// imageSetter tells the images on the node, the largest first. It keeps the
// list for a while, since reading it costs the runtime more than all else that
// the status needs.
type imageSetter struct {
	most int
	list func(context.Context) ([]runtime.ImageInfo, error)

	mu     sync.Mutex
	readAt time.Time
	images []corev1.ContainerImage
}

func newImageSetter(most int, list func(context.Context) ([]runtime.ImageInfo, error)) *imageSetter {
	return &imageSetter{most: most, list: list}
}

// Set implements Setter. When the list can not be read, what was told before
// stays: the images are still there.
func (s *imageSetter) Set(ctx context.Context, n *corev1.Node) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.readAt.IsZero() || now.Sub(s.readAt) >= imagesEvery {
		all, err := s.list(ctx)
		if err != nil {
			return fmt.Errorf("error getting image list: %w", err)
		}
		s.images, s.readAt = largest(all, s.most), now
	}
	n.Status.Images = s.images
	return nil
}

// largest sorts images by size, then by ID so that equal sizes never change
// places, and cuts the list. Most below 0: all of them.
func largest(all []runtime.ImageInfo, most int) (out []corev1.ContainerImage) {
	all = slices.SortedFunc(slices.Values(all), func(a, b runtime.ImageInfo) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.ID, b.ID))
	})
	if most >= 0 && most < len(all) {
		all = all[:most]
	}
	for _, image := range all {
		names := slices.Concat(image.RepoDigests, image.RepoTags)
		out = append(out, corev1.ContainerImage{Names: names[:min(len(names), maxImageNames)], SizeBytes: int64(image.Size)})
	}
	return out
}
