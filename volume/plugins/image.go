package plugins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/atomicfile"
	"nodekit.dev/internal/beneath"
	"nodekit.dev/internal/reasoned"
	"nodekit.dev/volume"
)

// Images makes images present for image volumes. It may block until ctx ends,
// and is called concurrently and again for an image that is there.
type Images interface {
	// Image pulls as the policy says, and answers with what the runtime knows the
	// image by.
	Image(ctx context.Context, pod *corev1.Pod, source corev1.ImageVolumeSource) (ref string, err error)
}

// imagePlugin gives image volumes: the image is pulled here and mounted by the
// runtime. What it was pulled as is kept in MetaDir, and the empty directory says
// that it was.
type imagePlugin struct{ images Images }

// refFile in MetaDir holds what the runtime knows the image by.
const refFile = "image"

func (imagePlugin) Name() string { return "kubernetes.io/image" }

func (imagePlugin) Supports(s volume.Source) bool { return s.Volume.Image != nil }

func (p imagePlugin) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	if p.images == nil {
		return volume.MountResult{}, reasoned.New("FailedMount", errors.New("this agent pulls no images for volumes")).Final()
	}
	if req.Volume.Image.Reference == "" {
		return volume.MountResult{}, fmt.Errorf("image volume %q names no image", req.Volume.Name)
	}
	ref, err := p.images.Image(ctx, req.Pod, *req.Volume.Image)
	if err != nil {
		return volume.MountResult{}, err
	}
	if err := os.MkdirAll(req.MetaDir, parentMode); err != nil {
		return volume.MountResult{}, err
	}
	if err := atomicfile.Write(filepath.Join(req.MetaDir, refFile), []byte(ref), 0o600); err != nil {
		return volume.MountResult{}, err
	}
	return volume.MountResult{HostPath: req.Dir}, os.MkdirAll(req.Dir, parentMode)
}

func (imagePlugin) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	result := volume.MountedResult{HostPath: req.Dir, ReadOnly: true}
	if info, err := os.Lstat(req.Dir); err != nil || !info.IsDir() {
		return result, unlessNotExist(err)
	}
	ref, err := os.ReadFile(filepath.Join(req.MetaDir, refFile))
	if err != nil {
		return result, unlessNotExist(err)
	}
	result.Image, result.Mounted = string(ref), len(ref) > 0
	return result, nil
}

func (imagePlugin) Unmount(ctx context.Context, req volume.UnmountRequest) error {
	if len(req.Mounts) > 0 {
		return &beneath.MountError{Path: req.Mounts[0]} // not ours
	}
	return volume.RemoveDir(ctx, req.Dir)
}

func unlessNotExist(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
