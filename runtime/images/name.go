package images

import (
	"fmt"

	"github.com/distribution/reference"
)

// WithDefaultTag adds the tag "latest" to a reference that has neither tag nor
// digest. It does not make short names long: which registry "busybox" comes
// from is for the runtime to say.
func WithDefaultTag(image string) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("couldn't parse image name %q: %w", image, err)
	}
	if reference.IsNameOnly(named) {
		return image + ":latest", nil
	}
	return image, nil
}
