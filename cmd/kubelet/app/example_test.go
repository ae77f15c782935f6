package app_test

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/app"
)

// A vendor's kubelet keeps every flag of the drop-in and adds its own.
func Example() {
	var site string
	code := app.Run(context.Background(), []string{"--site=north", "--version"}, os.Stdout, os.Stderr,
		app.Named("rackd", "v1.37.2+rackd.5"),
		app.AddFlags(func(fs *pflag.FlagSet) { fs.StringVar(&site, "site", "", "where the rack stands") }),
	)
	fmt.Println(code, site)
	// Output:
	// Kubernetes v1.37.2+rackd.5
	// 0 north
}
