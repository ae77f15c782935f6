// Command csidriver runs the CSI driver of the tests (package csidriver) for
// one node, to try an agent by hand:
//
//	csidriver --dir=/var/tmp/disk --kubelet-root=/var/lib/kubelet --node-id=n1 --volume=vol-1=320
//
// It ends at SIGINT or SIGTERM, and says what the agent did that the CSI
// specification forbids, and what it left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"nodekit.dev/test/integration/csidriver"
	"nodekit.dev/test/integration/testbed"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "csidriver:", err)
		os.Exit(1)
	}
}

func run() error {
	var cfg csidriver.Config
	volumes := map[string]int64{}
	flag.StringVar(&cfg.Name, "name", "disk.example", "name of the driver")
	flag.StringVar(&cfg.Dir, "dir", "", "folder of the driver")
	flag.StringVar(&cfg.KubeletRoot, "kubelet-root", "/var/lib/kubelet", "root directory of the agent")
	flag.StringVar(&cfg.NodeID, "node-id", "", "what the driver calls the node")
	flag.Int64Var(&cfg.MaxVolumes, "max-volumes", 0, "how many volumes the node takes; 0: the driver does not say")
	fsType := flag.String("fs-type", "ext4", "file system of new volumes")
	flag.Func("volume", "NAME=MiB of a volume to make; may be repeated", func(text string) error {
		name, size, _ := strings.Cut(text, "=")
		n, err := strconv.ParseInt(size, 10, 64)
		volumes[name] = n << 20
		return err
	})
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := testbed.InstallPackages(ctx, csidriver.Packages()); err != nil {
		return err
	}
	d, err := csidriver.New(cfg)
	if err != nil {
		return err
	}
	for name, size := range volumes {
		if err := d.Create(name, csidriver.Volume{Size: size, FSType: *fsType}); err != nil {
			return err
		}
	}
	if err := d.Start(); err != nil {
		return err
	}
	fmt.Printf("serving %s; Ctrl-C ends it\n", d.Endpoint())
	<-ctx.Done()
	err = d.Stop()
	for _, fault := range slices.Concat(d.Violations(), d.Leaks()) {
		err = errors.Join(err, errors.New(fault))
	}
	return err
}
