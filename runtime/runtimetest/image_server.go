package runtimetest

import (
	"context"
	"time"

	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// imageServer is the ImageService of the CRI over a World.
type imageServer struct {
	criv1.UnimplementedImageServiceServer
	world *World
}

func (i *imageServer) PullImage(ctx context.Context, req *criv1.PullImageRequest) (*criv1.PullImageResponse, error) {
	id, err := i.world.PullImage(ctx, runtime.ImagePull{
		Spec:    imageSpecFromCRI(req.GetImage()),
		Auth:    authFromCRI(req.GetAuth()),
		Sandbox: sandboxFromCRI(req.GetSandboxConfig()),
	})
	return &criv1.PullImageResponse{ImageRef: id}, err
}

func (i *imageServer) ImageStatus(ctx context.Context, req *criv1.ImageStatusRequest) (*criv1.ImageStatusResponse, error) {
	info, found, err := i.world.ImageStatus(ctx, imageSpecFromCRI(req.GetImage()))
	if err != nil || !found {
		return &criv1.ImageStatusResponse{}, err
	}
	return &criv1.ImageStatusResponse{Image: imageToCRI(info)}, nil
}

func (i *imageServer) ListImages(ctx context.Context, req *criv1.ListImagesRequest) (*criv1.ListImagesResponse, error) {
	var resp criv1.ListImagesResponse
	if name := req.GetFilter().GetImage().GetImage(); name != "" {
		info, found, err := i.world.ImageStatus(ctx, runtime.ImageSpec{Image: name})
		if found {
			resp.Images = []*criv1.Image{imageToCRI(info)}
		}
		return &resp, err
	}
	all, err := i.world.ListImages(ctx)
	for _, info := range all {
		resp.Images = append(resp.Images, imageToCRI(info))
	}
	return &resp, err
}

func (i *imageServer) RemoveImage(ctx context.Context, req *criv1.RemoveImageRequest) (*criv1.RemoveImageResponse, error) {
	return &criv1.RemoveImageResponse{}, i.world.RemoveImage(ctx, imageSpecFromCRI(req.GetImage()))
}

func (i *imageServer) ImageFsInfo(ctx context.Context, _ *criv1.ImageFsInfoRequest) (*criv1.ImageFsInfoResponse, error) {
	used := uint64(0)
	err := i.world.do(ctx, call{method: MethodImageFsInfo}, func() error {
		i.world.mu.Lock()
		defer i.world.mu.Unlock()
		for _, image := range i.world.images.byID {
			used += image.info.Size
		}
		return nil
	})
	usage := &criv1.FilesystemUsage{
		Timestamp: time.Now().UnixNano(),
		FsId:      &criv1.FilesystemIdentifier{Mountpoint: "/var/lib/" + runtimeName},
		UsedBytes: &criv1.UInt64Value{Value: used},
	}
	return &criv1.ImageFsInfoResponse{ImageFilesystems: []*criv1.FilesystemUsage{usage}}, err
}
