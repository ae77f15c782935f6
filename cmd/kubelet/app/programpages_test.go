package app

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestCleanSpans(t *testing.T) {
	const smaps = `00400000-010fd000 r-xp 00000000 fe:00 10002145                           /usr/bin/kubelet
Size:              13300 kB
Rss:                9780 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
010fd000-01e29000 r--p 00cfd000 fe:00 10002145                           /usr/bin/kubelet
Rss:               11504 kB
Anonymous:             4 kB
01e29000-01ea7000 rw-p 01a29000 fe:00 10002145                           /usr/bin/kubelet
Anonymous:             0 kB
02000000-02001000 r--s 00000000 fe:00 10002145                           /usr/bin/kubelet
Anonymous:             0 kB
02001000-02003000 r--p 00000000 fe:00 10002145                           /usr/bin/kubelet
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 77                         /lib/usr/bin/kubelet
Anonymous:             0 kB
7ffd0a5d6000-7ffd0a5f7000 rw-p 00000000 00:00 0                          [stack]
Anonymous:            12 kB
`
	got, err := cleanSpans(strings.NewReader(smaps), "/usr/bin/kubelet")
	if want := []span{{0x400000, 0x10fd000}, {0x2001000, 0x2003000}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
}

// The process goes on after its program was unmapped under it, with less.
func TestDropProgramPages(t *testing.T) {
	before := resident(t)
	if err := dropProgramPages(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after >= before {
		t.Errorf("%d pages of files were mapped, and %d after", before, after)
	}
}

// resident is the third field of statm: mapped pages of files.
func resident(t *testing.T) (pages int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	for _, digit := range strings.Fields(string(text))[2] {
		pages = pages*10 + int(digit-'0')
	}
	return pages
}
