// Command vendor-distro is a distribution's own kubelet: the drop-in with a
// flag, a configuration kind, a hook and a set of overrides of the vendor's.
// Each override stands in a file of its own and is what a fork of the kubelet
// needs a patch for (docs/seams.md):
//
//	go run ./examples/vendor-distro --config kubelet.yaml --site north
//
// The configuration file may hold, behind the KubeletConfiguration:
//
//	apiVersion: vendor.example/v1
//	kind: Site
//	name: south
//	clockFile: /run/systemd/timesync/synchronized
package main

import (
	"os"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/app"
	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node/nodefx"
)

// Site is the vendor's configuration kind. Overrides ask for it by type.
type Site struct {
	Name string `json:"name"`
	// ClockFile exists once the clock is right; empty: it is right.
	ClockFile string `json:"clockFile"`
	// Username and Password are for the vendor's own registry.
	Username string `json:"username"`
	Password string `json:"password"`
}

func main() { os.Exit(app.Main(os.Args[1:], distro()...)) }

// distro is the drop-in and what the vendor adds to it.
func distro() []app.Option {
	var site string
	return []app.Option{
		app.Named("example-kubelet", "v1.37.0-example.1"),
		app.AddFlags(func(fs *pflag.FlagSet) {
			fs.StringVar(&site, "site", "", "name of the site; overrides the Site document")
		}),
		app.AllowReferences(), // site_secrets.go has a secret for static pods
		app.AddKind(config.Register[Site]("vendor.example/v1", "Site")),
		app.Agent(func(loaded *config.Loaded) ([]nodefx.Option, error) {
			s, _ := config.Get[Site](loaded)
			if site != "" {
				s.Name = site
			}
			return append(overrides(), nodefx.Supply(s)), nil
		}),
	}
}

func overrides() []nodefx.Option {
	return []nodefx.Option{
		managedPods(), waitForClock(), mirror(), registryLogin(), siteEnv(), siteSandbox(),
		seededVolume(), siteCondition(), patientStart(), fleetEvents(), siteRoute(), auditHook(), unbalancedCPUs(),
		rackLabel(), ownSecrets(), ownProbes(),
	}
}
