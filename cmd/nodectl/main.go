// Command nodectl looks inside a running agent, and decides recorded decisions
// again. It only reads.
package main

import (
	"os"

	"nodekit.dev/cmd/nodectl/app"
)

func main() { os.Exit(app.Main(os.Args[1:])) }
