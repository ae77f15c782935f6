package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// socketMode lets only the agent's own user (root) in.
const socketMode = 0o600

// listenSocket takes over the path of an agent that died without removing it;
// the lock of the root directory keeps two live ones apart.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	if err := removeSocket(path); err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: restrict}
	return lc.Listen(ctx, "unix", path)
}

// removeSocket removes a socket, and nothing else that stands in its place.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is in the way: it is not a socket", path)
	}
	return os.Remove(path)
}

// restrict sets the mode before the socket has a name, so that at no moment
// anyone else can open it: Linux gives the file the mode of the socket.
func restrict(_, _ string, raw syscall.RawConn) error {
	var err error
	return errors.Join(raw.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), socketMode) }), err)
}
