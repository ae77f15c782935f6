package cri

import (
	"context"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

// ListImages lists all images that the runtime has.
func (c *Client) ListImages(ctx context.Context) ([]runtime.ImageInfo, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	found, ok, err := listStream[runtimeapi.StreamImagesResponse, *runtimeapi.Image]{
		conn: c.imgConn, name: opImages, items: (*runtimeapi.StreamImagesResponse).GetImages,
		open: func(ctx context.Context) (grpc.ServerStreamingClient[runtimeapi.StreamImagesResponse], error) {
			return c.images.StreamImages(ctx, &runtimeapi.StreamImagesRequest{})
		},
	}.read(ctx)
	if !ok {
		var resp *runtimeapi.ListImagesResponse
		resp, err = c.images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
		found = resp.GetImages()
	}
	if err != nil {
		return nil, wrap(opImages, "", err)
	}
	var out []runtime.ImageInfo
	for _, img := range found {
		out = append(out, imageInfo(img))
	}
	return out, nil
}

// ImageStatus reads one image; false when the runtime does not have it.
func (c *Client) ImageStatus(ctx context.Context, spec runtime.ImageSpec) (runtime.ImageInfo, bool, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: imageSpec(spec)})
	if err != nil {
		return runtime.ImageInfo{}, false, wrap("ImageStatus", spec.Image, err)
	}
	if resp.GetImage() == nil {
		return runtime.ImageInfo{}, false, nil
	}
	return imageInfo(resp.GetImage()), true, nil
}

// PullImage pulls an image and gives the reference that containers of it are
// created with. Only the context bounds it: how long a pull may stand still
// is the runtime's own business.
func (c *Client) PullImage(ctx context.Context, pull runtime.ImagePull) (string, error) {
	sandbox, err := sandboxConfig(pull.Sandbox)
	if err != nil {
		return "", wrap("PullImage", pull.Spec.Image, err)
	}
	resp, err := c.images.PullImage(ctx, &runtimeapi.PullImageRequest{
		Image: imageSpec(pull.Spec), Auth: imageAuth(pull.Auth), SandboxConfig: sandbox,
	})
	if err != nil {
		return "", wrap("PullImage", pull.Spec.Image, err)
	}
	return checkID("PullImage", pull.Spec.Image, resp.GetImageRef())
}

// RemoveImage removes an image with all its names. An image that is not there
// is removed.
func (c *Client) RemoveImage(ctx context.Context, spec runtime.ImageSpec) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	_, err := c.images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: imageSpec(spec)})
	return wrap("RemoveImage", spec.Image, unlessNotFound(err))
}

// FilesystemUsage is how much of one file system images or containers use.
type FilesystemUsage struct {
	Mountpoint string
	UsedBytes  uint64
	InodesUsed uint64
	At         time.Time // when it was counted
}

// ImageFilesystems are the file systems of the runtime's storage. Containers
// is empty where the runtime does not keep the two apart.
type ImageFilesystems struct {
	Images     []FilesystemUsage
	Containers []FilesystemUsage
}

// ImageFsInfo asks how much space images take.
func (c *Client) ImageFsInfo(ctx context.Context) (ImageFilesystems, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if err != nil {
		return ImageFilesystems{}, wrap("ImageFsInfo", "", err)
	}
	return ImageFilesystems{
		Images:     filesystems(resp.GetImageFilesystems()),
		Containers: filesystems(resp.GetContainerFilesystems()),
	}, nil
}

func filesystems(in []*runtimeapi.FilesystemUsage) []FilesystemUsage {
	var out []FilesystemUsage
	for _, fs := range in {
		out = append(out, FilesystemUsage{
			Mountpoint: fs.GetFsId().GetMountpoint(),
			UsedBytes:  fs.GetUsedBytes().GetValue(),
			InodesUsed: fs.GetInodesUsed().GetValue(),
			At:         nanoTime(fs.GetTimestamp()),
		})
	}
	return out
}

func imageSpec(s runtime.ImageSpec) *runtimeapi.ImageSpec {
	return &runtimeapi.ImageSpec{Image: s.Image, RuntimeHandler: s.RuntimeHandler, Annotations: s.Annotations}
}

// imageAuth leaves out credentials that say nothing: an empty message makes
// some runtimes try a login without a name.
func imageAuth(a runtime.ImageAuth) *runtimeapi.AuthConfig {
	if a == (runtime.ImageAuth{}) {
		return nil
	}
	return &runtimeapi.AuthConfig{
		Username: a.Username, Password: a.Password, Auth: a.Auth, ServerAddress: a.ServerAddress,
		IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
	}
}

func imageInfo(img *runtimeapi.Image) runtime.ImageInfo {
	out := runtime.ImageInfo{
		ID:          img.GetId(),
		RepoTags:    img.GetRepoTags(),
		RepoDigests: img.GetRepoDigests(),
		Size:        img.GetSize(),
		Pinned:      img.GetPinned(),
		User:        img.GetUsername(),
	}
	if uid := img.GetUid(); uid != nil {
		out.UID = &uid.Value
	}
	return out
}
