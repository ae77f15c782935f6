package runtimetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"nodekit.dev/runtime"
)

// RegistryImage is what a registry has under one name. The zero value can be
// pulled by anyone at once.
type RegistryImage struct {
	// Err is what a pull ends with; nil: success.
	Err error
	// Takes is how long a pull lasts.
	Takes time.Duration
	// Auth is who may pull; nil: anyone.
	Auth *runtime.ImageAuth
	// Size in bytes, User (a name) and UID end up in the pulled image.
	Size   uint64
	User   string
	UID    *int64
	Pinned bool
}

// MissingDomain is a registry that has no image.
const MissingDomain = "missing.invalid"

// Registry says what a pull of that name gives. Names that nobody told about
// can be pulled, except below MissingDomain.
func (w *World) Registry(name string, image RegistryImage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.images.registry[normal(name)] = image
}

// AddImage makes an image present without a pull and returns its ID.
func (w *World) AddImage(name string, image RegistryImage) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.images.add(normal(name), image).info.ID
}

// PullImage makes an image present and returns its ID.
func (w *World) PullImage(ctx context.Context, pull runtime.ImagePull) (string, error) {
	var id string
	name := normal(pull.Spec.Image)
	err := w.do(ctx, call{method: MethodPullImage, uid: pull.Sandbox.UID}, func() error {
		image, err := w.lookUp(name, pull.Auth)
		if err != nil {
			return err
		}
		if err := w.pause(ctx, image.Takes, nil); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		id = w.images.add(name, image).info.ID
		return nil
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func (w *World) lookUp(name string, auth runtime.ImageAuth) (RegistryImage, error) {
	if name == "" {
		return RegistryImage{}, status.Error(codes.InvalidArgument, "failed to parse image reference")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	image, known := w.images.registry[name]
	switch {
	case !known && strings.HasPrefix(name, MissingDomain+"/"):
		return image, notFound("failed to pull and unpack image %q: failed to resolve reference %q: not found", name, name)
	case image.Err != nil:
		return image, image.Err
	case image.Auth != nil && *image.Auth != auth:
		return image, status.Errorf(codes.Unknown, "failed to pull and unpack image %q: pull access denied, repository does not exist or may require authorization", name)
	}
	return image, nil
}

// ImageStatus returns the image of that name or ID; false: it is not there.
func (w *World) ImageStatus(ctx context.Context, image runtime.ImageSpec) (runtime.ImageInfo, bool, error) {
	var (
		info  runtime.ImageInfo
		found bool
	)
	err := w.do(ctx, call{method: MethodImageStatus}, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if i := w.images.find(image.Image); i != nil {
			info, found = i.info, true
		}
		return nil
	})
	return info, found, err
}

// ListImages returns all images, sorted by ID.
func (w *World) ListImages(ctx context.Context) ([]runtime.ImageInfo, error) {
	var all []runtime.ImageInfo
	err := w.do(ctx, call{method: MethodListImages}, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, i := range w.images.byID {
			all = append(all, i.info)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b runtime.ImageInfo) int { return strings.Compare(a.ID, b.ID) })
	return all, err
}

// RemoveImage removes an image by name or ID. One that is gone is fine.
func (w *World) RemoveImage(ctx context.Context, image runtime.ImageSpec) error {
	w.report.Helper()
	return w.do(ctx, call{method: MethodRemoveImage}, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		i := w.images.find(image.Image)
		if i == nil {
			return nil
		}
		if i.info.Pinned {
			w.violateLocked(RuleImageInUse, nil, "", "pinned image %s is removed", image.Image)
		}
		if i.users > 0 {
			w.violateLocked(RuleImageInUse, nil, "", "image %s is removed while %d containers use it", image.Image, i.users)
		}
		w.images.remove(i)
		return nil
	})
}

// imageStore holds the images on the node and what the registries have.
type imageStore struct {
	byID     map[string]*storedImage
	byName   map[string]*storedImage
	registry map[string]RegistryImage
}

type storedImage struct {
	info  runtime.ImageInfo
	users int
}

func newImageStore() imageStore {
	return imageStore{
		byID:     map[string]*storedImage{},
		byName:   map[string]*storedImage{},
		registry: map[string]RegistryImage{},
	}
}

func (s *imageStore) addPinned(name string) { s.add(normal(name), RegistryImage{Pinned: true}) }

// add stores what was pulled under a normal name.
func (s *imageStore) add(name string, image RegistryImage) *storedImage {
	if known := s.byName[name]; known != nil {
		return known
	}
	repository, digest := name, digestOf("manifest of "+name)
	if r, d, byDigest := strings.Cut(name, "@"); byDigest {
		repository, digest = r, d
	}
	i := &storedImage{info: runtime.ImageInfo{
		ID: digestOf("configuration of " + name), Size: image.Size, Pinned: image.Pinned, User: image.User, UID: image.UID,
	}}
	if repository == name {
		i.info.RepoTags = []string{name}
		repository = name[:strings.LastIndex(name, ":")]
	}
	i.info.RepoDigests = []string{repository + "@" + digest}
	s.byID[i.info.ID] = i
	for _, n := range append(i.info.RepoTags, i.info.RepoDigests...) {
		s.byName[n] = i
	}
	return i
}

// find takes a name in any spelling, or an ID.
func (s *imageStore) find(ref string) *storedImage {
	if i := s.byID[ref]; i != nil {
		return i
	}
	if i := s.byID["sha256:"+ref]; i != nil {
		return i
	}
	if i := s.byName[ref]; i != nil { // before the parser, which is slow
		return i
	}
	return s.byName[normal(ref)]
}

func (s *imageStore) remove(i *storedImage) {
	delete(s.byID, i.info.ID)
	for _, n := range append(slices.Clone(i.info.RepoTags), i.info.RepoDigests...) {
		delete(s.byName, n)
	}
}

// use counts containers of an image, which may be gone already.
func (s *imageStore) use(id string, n int) {
	if i := s.byID[id]; i != nil {
		i.users += n
	}
}

// normal is the full form of an image name; empty when it is none.
func normal(name string) string {
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return ""
	}
	return named.String()
}

func digestOf(what string) string {
	sum := sha256.Sum256([]byte(what))
	return "sha256:" + hex.EncodeToString(sum[:])
}
