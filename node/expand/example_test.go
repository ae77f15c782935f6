package expand_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"nodekit.dev/node/expand"
	"nodekit.dev/volume"
)

// lvm grows the volumes of a vendor's own plugin.
type lvm struct{}

func (lvm) Grows(volume.Recorded) bool                                             { return true }
func (lvm) SizeOf(volume.Recorded) (int64, error)                                  { return 1 << 30, nil }
func (lvm) Expand(_ context.Context, _ volume.Recorded, size int64) (int64, error) { return size, nil }

func Example() {
	cfg := expand.Default()
	cfg.NodeName = "n1"
	e, err := expand.New(cfg, expand.Parts{
		Core:    &rest.RESTClient{},
		Volumes: func() ([]volume.Recorded, error) { return nil, nil },
		Grower:  lvm{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(e.Run(ctx))
	// Output: context canceled
}
