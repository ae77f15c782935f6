package pluginwatch_test

import (
	"fmt"

	"nodekit.dev/internal/pluginwatch"
)

func Example() {
	_, err := pluginwatch.New(pluginwatch.Config{Dir: "plugins_registry"}, nil, nil)
	fmt.Println(err)
	w, err := pluginwatch.New(pluginwatch.Config{Dir: "/var/lib/kubelet/plugins_registry"}, map[string]pluginwatch.Handler{pluginwatch.CSI: newHandler()}, nil)
	fmt.Println(w != nil, err)
	// Output:
	// plugin registry: Dir "plugins_registry" must be an absolute path
	// true <nil>
}
