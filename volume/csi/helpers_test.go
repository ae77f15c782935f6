package csi_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"

	"nodekit.dev/volume/csi"
)

func inlineHandle(uid, name string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(uid+name)))
}

// runUntilUnstaged has the plugin unstage what is left.
func runUntilUnstaged(t *testing.T, d *strictDriver, p *csi.Plugin) {
	t.Helper()
	unstaged := make(chan bool, 10)
	d.mu.Lock()
	d.meet = func(_ context.Context, method string, after bool) error {
		if method == "NodeUnstageVolume" && after {
			unstaged <- true
		}
		return nil
	}
	d.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	<-unstaged
	for staged, err := p.Staged(); len(staged) > 0 || err != nil; staged, err = p.Staged() {
		must(t, err)
	}
	cancel()
	<-ended
}
