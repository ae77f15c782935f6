// Package sockets looks at the sockets of this network namespace.
//
//	n, err := sockets.TimeWait(8080)
package sockets

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// timeWaitState is TCP_TIME_WAIT in /proc/net/tcp, see proc(5).
const timeWaitState = "06"

// TimeWait counts the TCP sockets in TIME_WAIT with that port at either end; 0
// counts all. It reads /proc/net/tcp, and tcp6 where there is IPv6.
func TimeWait(port int) (int, error) {
	v4, err := timeWaitIn("/proc/net/tcp", port)
	if err != nil {
		return 0, err
	}
	v6, err := timeWaitIn("/proc/net/tcp6", port)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return v4 + v6, err
}

func timeWaitIn(file string, port int) (count int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("count sockets: %w", err)
	}
	end := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // number, local and remote address, state
		if len(f) > 3 && f[3] == timeWaitState && (port == 0 || strings.HasSuffix(f[1], end) || strings.HasSuffix(f[2], end)) {
			count++
		}
	}
	return count, nil
}
