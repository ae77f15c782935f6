package privilege

import (
	"errors"

	"golang.org/x/sys/windows"
)

// Check wants the process to be elevated. Being a member of the Administrators
// is neither enough, as their processes start without their rights, nor needed.
func Check() error {
	if windows.GetCurrentProcessToken().IsElevated() {
		return nil
	}
	return errors.New("kubelet needs to run with elevated permissions!") //nolint:revive,staticcheck // the stock kubelet's words
}
