package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
)

// servers is the process that is probed.
type servers struct {
	// HTTP and TCP are ports of 127.0.0.1.
	HTTP, TCP []string
	stdin     io.Closer
	cmd       *exec.Cmd
}

func startServers(ctx context.Context, program string) (*servers, error) {
	cmd := exec.CommandContext(ctx, program)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the servers: %w", err)
	}
	s := &servers{stdin: stdin, cmd: cmd}
	if err := json.NewDecoder(stdout).Decode(s); err != nil {
		return nil, errors.Join(fmt.Errorf("the servers' addresses: %w", err), s.stop())
	}
	for _, list := range [][]string{s.HTTP, s.TCP} {
		for i := range list {
			_, port, err := net.SplitHostPort(list[i])
			if err != nil {
				return nil, errors.Join(err, s.stop())
			}
			list[i] = port
		}
	}
	return s, nil
}

func (s *servers) stop() error { return errors.Join(s.stdin.Close(), s.cmd.Wait()) }
