package kubeletapi_test

import (
	"fmt"
	"strings"

	"nodekit.dev/node/server"
	"nodekit.dev/node/server/kubeletapi"
)

// The stock routes are a group: here are those that run something, with what
// a client must be allowed to do on the node.
func Example() {
	cfg := kubeletapi.Default()
	node := &world{} // *node.Node and *cri.Client, in an agent
	routes, err := kubeletapi.Routes(cfg, kubeletapi.Parts{Pods: node, Runtime: node, Commands: node, Checkpointer: node})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range routes {
		method, path, _ := strings.Cut(r.Value.Pattern, " ")
		if method == "POST" && !strings.Contains(path, "{uid}") {
			fmt.Println(r.Name, path, server.SubresourcesOf(path))
		}
	}
	// Output:
	// exec-post /exec/{namespace}/{pod}/{container} [proxy]
	// attach-post /attach/{namespace}/{pod}/{container} [proxy]
	// portforward-post /portForward/{namespace}/{pod} [proxy]
	// run /run/{namespace}/{pod}/{container} [proxy]
	// checkpoint /checkpoint/{namespace}/{pod}/{container} [checkpoint]
}
