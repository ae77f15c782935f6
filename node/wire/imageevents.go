package wire

import (
	"fmt"
	"time"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
	"nodekit.dev/runtime/images"
)

// imageEvents tells users what becomes of one container's image, in the stock
// kubelet's words. Failures are not among it: the pod machine tells of them,
// with what it makes of them.
func imageEvents(tell func(lifecycle.Event)) images.Observer {
	if tell == nil {
		return images.Observer{}
	}
	event := func(reason, format string, args ...any) {
		tell(lifecycle.Event{Type: lifecycle.EventNormal, Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	return images.Observer{
		Present: func(req images.Request, _ runtime.ImageInfo) {
			event("Pulled", "Container image %q already present on machine and can be accessed by the pod", req.Image)
		},
		PullStarted: func(req images.Request) { event("Pulling", "Pulling image %q", req.Image) },
		PullDone: func(req images.Request, done images.PullDone) {
			if done.Err == nil {
				event("Pulled", "Successfully pulled image %q in %v (%v including waiting). Image size: %d bytes.", req.Image,
					done.Took.Truncate(time.Millisecond), done.Waited.Truncate(time.Millisecond), done.Size)
			}
		},
	}
}
