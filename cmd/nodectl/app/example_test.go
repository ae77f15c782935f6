package app_test

import (
	"context"
	"fmt"
	"os"

	"nodekit.dev/cmd/nodectl/app"
)

// Without an agent every command says what to do.
func Example() {
	code := app.Run(context.Background(), []string{"pods", "--root-dir=/nowhere"}, os.Stdout, os.Stdout)
	fmt.Println(code)
	// Output:
	// nodectl: there is no socket /nowhere/nodekit.sock: is the agent running? If it has another root directory, say --root-dir or --socket
	// 1
}
