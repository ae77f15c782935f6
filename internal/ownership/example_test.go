package ownership_test

import (
	"context"
	"fmt"
	"os"

	"nodekit.dev/internal/ownership"
)

func ExampleGive() {
	dir, err := os.MkdirTemp("", "volume")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	done, err := ownership.Give(context.Background(), dir, ownership.Request{Group: int64(os.Getegid()), OnlyOnMismatch: true})
	fmt.Println(done.Files, done.Refused, err)
	// Output: 1 0 <nil>
}
