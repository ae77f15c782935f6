// Install brings what the integration tests need: Debian packages and a
// containerd built from its module. Tests call the same code by themselves.
package main

import (
	"context"
	"fmt"
	"os"

	"nodekit.dev/test/integration/testbed"
)

func main() {
	if err := testbed.Install(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
