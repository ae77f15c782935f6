package userns_test

import (
	"context"
	"fmt"
	"os"

	"nodekit.dev/resources/userns"
)

func Example() {
	dir, err := os.MkdirTemp("", "pods")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ranges, err := userns.New(userns.Config{PodsDir: dir}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, uid := range []string{"pod-a", "pod-b", "pod-a"} {
		ids, err := ranges.Range(context.Background(), uid)
		fmt.Println(uid, ids.First, ids.Length, err)
	}
	// Output:
	// pod-a 65536 65536 <nil>
	// pod-b 131072 65536 <nil>
	// pod-a 65536 65536 <nil>
}
