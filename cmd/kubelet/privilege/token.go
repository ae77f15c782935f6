package privilege

import "errors"

// token is the access token of a process on Windows, and all that is asked of
// it. It stands here, in a file for every system, so that every system tests it.
type token interface {
	// IsElevated says that the process has its user's full rights.
	IsElevated() bool
}

// checkToken wants the process to be elevated. Being a member of the
// Administrators is neither enough, as their processes start without their
// rights, nor needed (k/k#108146).
func checkToken(t token) error {
	if t.IsElevated() {
		return nil
	}
	return errors.New("kubelet needs to run with elevated permissions!") //nolint:staticcheck // the stock kubelet's words
}
