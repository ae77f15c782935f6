package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// span is a range of the process's addresses.
type span struct{ start, end uintptr }

// dropProgramPages unmaps the pages of the program's own file: nine of ten are
// code and tables that only the start or a burst of pods needed, or that the
// kernel mapped beside them. The page cache keeps them as long as there is room,
// and what is touched again comes back from there without a read.
func dropProgramPages() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer func() { _ = smaps.Close() }()
	spans, err := cleanSpans(smaps, program)
	for _, s := range spans {
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, s.start, s.end-s.start, unix.MADV_DONTNEED)
		if errno != 0 {
			err = errors.Join(err, fmt.Errorf("madvise: %w", errno))
		}
	}
	return err
}

// cleanSpans finds where a file is mapped without the right to write, and
// without a page that differs from the file, as a loader's relocations and a
// debugger's breakpoints do: those would be lost.
func cleanSpans(smaps io.Reader, file string) ([]span, error) {
	var spans []span
	var s span
	mine := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		line := lines.Text()
		if at, perms, isHead := mappingHead(line); isHead {
			s, mine = at, strings.HasSuffix(line, " "+file) && !strings.Contains(perms, "w") && strings.HasSuffix(perms, "p")
			continue
		}
		if value, isAnonymous := strings.CutPrefix(line, "Anonymous:"); isAnonymous && mine && strings.TrimSpace(value) == "0 kB" {
			spans = append(spans, s)
		}
	}
	return spans, lines.Err()
}

// mappingHead reads the first line of a mapping: addresses, permissions, ...
func mappingHead(line string) (at span, perms string, ok bool) {
	n, err := fmt.Sscanf(line, "%x-%x %s", &at.start, &at.end, &perms)
	return at, perms, err == nil && n == 3
}
