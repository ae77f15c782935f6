package images_test

import (
	"context"
	"errors"
	"fmt"

	"nodekit.dev/runtime"
	"nodekit.dev/runtime/images"
)

// offline is an image service that has one image and no registry.
type offline struct{}

func (offline) ImageStatus(_ context.Context, spec runtime.ImageSpec) (runtime.ImageInfo, bool, error) {
	return runtime.ImageInfo{ID: "sha256:1"}, spec.Image == "busybox:latest", nil
}

func (offline) PullImage(context.Context, runtime.ImagePull) (string, error) {
	return "", errors.New("no route to host")
}

func Example() {
	puller, err := images.New(images.DefaultConfig(), offline{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, image := range []string{"busybox", "nginx", "nginx"} {
		ref, err := puller.Pull(context.Background(), images.Request{PodUID: "1", Image: image})
		var why interface{ Reason() string }
		if errors.As(err, &why) {
			fmt.Println(why.Reason()+":", err)
			continue
		}
		fmt.Println(ref)
	}
	// Output:
	// sha256:1
	// ErrImagePull: no route to host
	// ImagePullBackOff: Back-off pulling image "nginx": ErrImagePull: no route to host
}
