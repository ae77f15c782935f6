package iptables_test

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"nodekit.dev/node/iptables"
)

// dry says what would be run, on a host without iptables.
type dry struct{}

func (dry) Run(_ context.Context, name string, args ...string) (int, []byte, error) {
	if name == "iptables" {
		fmt.Println(name, args)
	}
	return -1, nil, exec.ErrNotFound
}

func Example() {
	keeper, err := iptables.New(iptables.Default(), dry{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(keeper.Run(ctx))
	// Output:
	// iptables [-w 5 -S POSTROUTING -t nat]
	// context deadline exceeded
}
