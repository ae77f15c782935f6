//go:build unix

package privilege

import (
	"fmt"
	"testing"
)

func TestCheck(t *testing.T) {
	if err := check(0); err != nil {
		t.Errorf("root: %v", err)
	}
	if err := check(1000); err == nil || err.Error() != "kubelet needs to run as uid `0`. It is being run as 1000" {
		t.Errorf("uid 1000: %v", err)
	}
}

func Example() {
	if err := check(1000); err != nil {
		fmt.Println(err)
	}
	// Output: kubelet needs to run as uid `0`. It is being run as 1000
}
