package tcpcheck_test

import (
	"context"
	"fmt"
	"net"

	"nodekit.dev/probe/tcpcheck"
)

// A port that takes connections, and then one that does not.
func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	target := tcpcheck.Target{Address: l.Addr().String()}
	fmt.Println(tcpcheck.Check(context.Background(), target).Result)
	_ = l.Close()
	fmt.Println(tcpcheck.Check(context.Background(), target).Result)
	// Output:
	// success
	// failure
}
