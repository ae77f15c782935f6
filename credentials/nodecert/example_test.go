package nodecert_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"nodekit.dev/credentials/nodecert"
)

// A node without an API server serves with a certificate of its own.
func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	certs, err := nodecert.New(nodecert.Config{NodeName: "edge-7", Dir: filepath.Join(dir, "pki")}, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = certs.Server(nil)
	fmt.Println(err)

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- certs.Run(ctx) }()
	<-certs.ServerReady()
	pair, err := certs.Server(nil)
	fmt.Println(strings.Split(pair.Leaf.Subject.CommonName, "@")[0], pair.Leaf.DNSNames, err)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// no server certificate: the agent is starting
	// edge-7 [edge-7] <nil>
	// context canceled
}
