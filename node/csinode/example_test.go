package csinode_test

import (
	"fmt"

	"nodekit.dev/node/csinode"
)

func Example() {
	_, err := csinode.New(csinode.Config{NodeName: "n1"}, csinode.Parts{})
	fmt.Println(err)
	// Output:
	// csinode: parts: Core, Storage, Node and Drivers must be there
}
