// Command kubelet is the drop-in reference binary: the stock kubelet's flags,
// configuration and directories over the parts of nodekit.
package main

import (
	"os"

	"nodekit.dev/cmd/kubelet/app"
)

func main() { os.Exit(app.Main(os.Args[1:])) }
