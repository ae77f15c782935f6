package images

import (
	"fmt"
	"strings"
	"time"

	"nodekit.dev/internal/reasoned"
)

// The reasons of errors, in the stock kubelet's words.
const (
	ReasonInvalidImageName = "InvalidImageName"
	ReasonInspect          = "ImageInspectError"
	ReasonNeverPull        = "ErrImageNeverPull"
	ReasonPull             = "ErrImagePull"
	ReasonBackOff          = "ImagePullBackOff"
	ReasonRegistry         = "RegistryUnavailable"
	ReasonSignature        = "SignatureValidationFailed"
)

func invalidName(image string, err error) error {
	return reasoned.New(ReasonInvalidImageName, fmt.Errorf("Failed to apply default image tag %q: %w", image, err)) //nolint:staticcheck // the stock text
}

func inspectFailed(image string, err error) error {
	return reasoned.New(ReasonInspect, fmt.Errorf("Failed to inspect image %q: %w", image, err)) //nolint:staticcheck // the stock text
}

func neverPull(image string) error {
	return reasoned.New(ReasonNeverPull, fmt.Errorf("Container image %q is not present with pull policy of Never", image)) //nolint:staticcheck // the stock text
}

func backingOff(image, last string, wait time.Duration) error {
	return reasoned.New(ReasonBackOff, fmt.Errorf("Back-off pulling image %q: %s", image, last)).After(wait) //nolint:staticcheck // the stock text
}

// pullFailed gives a failed pull the reason that the runtime's message starts
// with: the CRI hands these two over as the beginning of a text.
func pullFailed(image string, err error, wait time.Duration) *reasoned.Error {
	text := err.Error()
	if i := strings.LastIndex(text, "desc = "); i >= 0 { // gRPC's own prefix
		text = text[i+len("desc = "):]
	}
	if detail, ok := strings.CutPrefix(text, ReasonRegistry); ok {
		err = fmt.Errorf("image pull failed for %s because the registry is unavailable%s%w", image, detail, hidden{err})
		return reasoned.New(ReasonRegistry, err).After(wait)
	}
	if detail, ok := strings.CutPrefix(text, ReasonSignature); ok {
		err = fmt.Errorf("image pull failed for %s because the signature validation failed%s%w", image, detail, hidden{err})
		return reasoned.New(ReasonSignature, err).After(wait)
	}
	return reasoned.New(ReasonPull, err).After(wait)
}

// hidden keeps an error in the chain whose text was already used.
type hidden struct{ error }

func (hidden) Error() string   { return "" }
func (h hidden) Unwrap() error { return h.error }
