//go:build unix

package privilege

import (
	"fmt"
	"os"
)

// Check wants the process to be root.
func Check() error { return check(os.Geteuid()) }

func check(uid int) error {
	if uid == 0 {
		return nil
	}
	return fmt.Errorf("kubelet needs to run as uid `0`. It is being run as %d", uid)
}
