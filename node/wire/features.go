package wire

import (
	"context"
	"time"

	"nodekit.dev/node/podspec"
	"nodekit.dev/runtime/cri"
)

// featuresTimeout bounds the one question per connection.
const featuresTimeout = 5 * time.Second

// Features asks the runtime what its handlers can do, once per connection. The
// seam that needs it is pure and has no context, so the question has a short
// one of its own. While the runtime is away the answer is yes: to reject a pod
// would be final, and the client checks again when it makes the container.
func Features(client *cri.Client) func(handler string) podspec.RuntimeFeatures {
	return func(handler string) podspec.RuntimeFeatures {
		ctx, cancel := context.WithTimeout(context.Background(), featuresTimeout)
		defer cancel()
		f, err := client.Features(ctx)
		if err != nil {
			return podspec.RuntimeFeatures{RecursiveReadOnlyMounts: true, SupplementalGroupsPolicy: true}
		}
		return podspec.RuntimeFeatures{
			RecursiveReadOnlyMounts:  f.Handlers[handler].RecursiveReadOnlyMounts,
			SupplementalGroupsPolicy: f.SupplementalGroupsPolicy,
		}
	}
}
