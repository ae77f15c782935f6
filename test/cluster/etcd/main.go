// Etcd is the store of the tests' control plane, in a module of its own so that
// its version depends on nobody else's.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
