package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/net/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"nodekit.dev/internal/tasks"
)

// The channels of a WebSocket that carries a command: the first byte of each
// message. A message of channelClose and a channel ends that one.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
	channelError  = 3
	channelResize = 4
	channelClose  = 255
)

const (
	// maxStatus is how much a command's final status may say, bytes.
	maxStatus = 1 << 20
	// outputBlock is how much output goes into one message, bytes.
	outputBlock = 32 << 10
)

// errNoStatus is how a command ends whose runtime went away: v4 tells a status
// of commands that end well, too.
var errNoStatus = errors.New("the runtime's streaming server ended the connection without telling how the command ended")

// translate speaks v5 over a WebSocket with the client and v4 over SPDY with
// the runtime. What v5 has and v4 has not is the end of stdin, for which SPDY
// has its own word.
func (p *Proxy) translate(w http.ResponseWriter, r *http.Request, t Target) {
	back, err := connect(r.Context(), http.MethodPost, t.URL, spdyHeader(commandV4))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	conn, err := spdy.NewClientConnection(back)
	if err != nil {
		p.fail(w, r, fmt.Errorf("speak SPDY with the runtime's streaming server: %w", err))
		return
	}
	defer hangUp(conn)
	accept(w, r, commandV5, func(client *websocket.Conn) {
		if err := p.command(r.Context(), client, conn, t.Options); err != nil {
			p.log.Debug("a stream broke off", "path", r.URL.Path, "err", err)
		}
	})
}

// command passes the streams of one command on until it ends.
func (p *Proxy) command(ctx context.Context, client *websocket.Conn, conn httpstream.Connection, o Options) error {
	streams, err := open(conn, o)
	if err != nil {
		return errors.Join(err, send(client, channelError, internalError(err)))
	}
	// The client waits for a first message to know that it is connected.
	if err := send(client, firstChannel(o), nil); err != nil {
		return err
	}
	group := tasks.New(ctx)
	moved := p.watchIdle(group)
	group.Go("stream-in", func(context.Context) error {
		defer group.Stop() // the client is gone: so is who wants the rest
		return inbound(client, streams, moved)
	})
	group.Go("stream-out", func(ctx context.Context) error {
		defer group.Stop()
		return outbound(ctx, client, streams, moved)
	})
	<-group.Context().Done()
	hangUp(client, conn)
	return group.Wait()
}

// hangUp closes connections over which nothing more is to come.
func hangUp(conns ...io.Closer) {
	for _, c := range conns {
		_ = c.Close()
	}
}

// firstChannel is the lowest one that goes to the client.
func firstChannel(o Options) byte {
	switch {
	case o.Stdout:
		return channelStdout
	case o.Stderr:
		return channelStderr
	}
	return channelError
}

// open makes the streams that the options ask for, by channel.
func open(conn httpstream.Connection, o Options) (map[byte]httpstream.Stream, error) {
	streams := map[byte]httpstream.Stream{}
	for _, s := range []struct {
		channel byte
		name    string
		wanted  bool
	}{
		{channelError, "error", true},
		{channelStdin, "stdin", o.Stdin},
		{channelStdout, "stdout", o.Stdout},
		{channelStderr, "stderr", o.Stderr},
		{channelResize, "resize", o.TTY},
	} {
		if !s.wanted {
			continue
		}
		stream, err := conn.CreateStream(http.Header{"streamType": {s.name}})
		if err != nil {
			return nil, fmt.Errorf("open stream %s: %w", s.name, err)
		}
		streams[s.channel] = stream
	}
	return streams, nil
}

// inbound passes on what the client says until it is gone.
func inbound(client *websocket.Conn, streams map[byte]httpstream.Stream, moved *movement) error {
	for {
		var message []byte
		if err := websocket.Message.Receive(client, &message); err != nil {
			return ended(0, ignoreEOF(err))
		}
		moved.now()
		if len(message) == 0 {
			continue
		}
		if message[0] == channelClose {
			if err := closeChannel(streams, message[1:]); err != nil {
				return err
			}
			continue
		}
		stream := streams[message[0]]
		if stream == nil || message[0] != channelStdin && message[0] != channelResize {
			continue // nobody wanted it
		}
		// A command may have closed its stdin, or ended: its output matters still.
		_, _ = stream.Write(message[1:])
	}
}

var errBadClose = errors.New("a message that closes a channel must name one")

func closeChannel(streams map[byte]httpstream.Stream, channels []byte) error {
	if len(channels) != 1 {
		return errBadClose
	}
	if stream := streams[channels[0]]; stream != nil {
		return stream.Close()
	}
	return nil
}

// outbound passes on the output and then, when there is no more, how the
// command ended.
func outbound(ctx context.Context, client *websocket.Conn, streams map[byte]httpstream.Stream, moved *movement) error {
	group := tasks.New(ctx)
	for _, channel := range []byte{channelStdout, channelStderr} {
		if stream := streams[channel]; stream != nil {
			group.Go("stream-output", func(context.Context) error {
				return copyOut(client, channel, moving{stream, moved})
			})
		}
	}
	status, err := io.ReadAll(io.LimitReader(streams[channelError], maxStatus))
	if err := group.Wait(); err != nil {
		return err
	}
	if err == nil && len(status) == 0 {
		err = errNoStatus
	}
	if err != nil {
		return errors.Join(err, send(client, channelError, internalError(err)))
	}
	return send(client, channelError, status)
}

func copyOut(client *websocket.Conn, channel byte, from io.Reader) error {
	block := make([]byte, outputBlock)
	for {
		n, err := from.Read(block)
		if n > 0 {
			if err := send(client, channel, block[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return ignoreEOF(err)
		}
	}
}

// send is safe for concurrent use.
func send(client *websocket.Conn, channel byte, data []byte) error {
	return websocket.Message.Send(client, append([]byte{channel}, data...))
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
