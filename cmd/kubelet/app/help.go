package app

import (
	"fmt"
	"io"

	"nodekit.dev/cmd/kubelet/config"
)

// helpWidth is where lines of --help are wrapped.
const helpWidth = 100

// usage prints the flags by theme and the gates that can be set.
func usage(w io.Writer, o *options, themes []theme) {
	fmt.Fprintf(w, "A node agent that runs pods through a CRI runtime.\n\nUsage:\n  %s [flags]\n", o.name)
	for _, t := range themes {
		if t.set.HasFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", t.title, t.set.FlagUsagesWrapped(helpWidth))
		}
	}
	gates, err := knownGates(o)
	if err != nil {
		fmt.Fprintf(w, "\nFeature gates: %v\n", err)
		return
	}
	fmt.Fprint(w, "\nFeature gates that change what this kubelet does:\n")
	for _, g := range gates.List() {
		if g.Settable() {
			fmt.Fprintf(w, "  %s=true|false (%s - default=%t)\n", g.Name, g.Stage, g.Default)
		}
	}
}

// knownGates are the stock gates and the vendor's.
func knownGates(o *options) (config.Gates, error) {
	gates, err := config.StockGates()
	if err != nil {
		return gates, err
	}
	for _, g := range o.gates {
		if err := gates.AddGate(g); err != nil {
			return gates, err
		}
	}
	return gates, nil
}
