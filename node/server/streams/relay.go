package streams

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"nodekit.dev/internal/tasks"
)

// relay passes an upgrade on as it is, and then bytes both ways.
func (p *Proxy) relay(w http.ResponseWriter, r *http.Request, target *url.URL) {
	if !upgrades(r) {
		http.Error(w, "Upgrade request required", http.StatusBadRequest)
		return
	}
	back, err := connect(r.Context(), r.Method, target, passedOn(r))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	defer back.Close()
	client, err := takeOver(w, back.answer)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	defer client.Close()
	p.join(r.Context(), client, back)
}

// passedOn are the client's headers without what is not for the runtime.
func passedOn(r *http.Request) http.Header {
	header := r.Header.Clone()
	header.Del("Authorization")
	header.Del("Cookie")
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		header.Add("X-Forwarded-For", host)
	}
	return header
}

// takenOver is the client's connection after the upgrade.
type takenOver struct {
	net.Conn
	buffered io.Reader // what the client sent already, then the rest
}

func (t takenOver) Read(p []byte) (int, error) { return t.buffered.Read(p) }

// takeOver gives the client the streaming server's answer and then its
// connection to us. An error can still be answered.
func takeOver(w http.ResponseWriter, answer *http.Response) (takenOver, error) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return takenOver{}, fmt.Errorf("request connection cannot be hijacked: %T", w)
	}
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		return takenOver{}, fmt.Errorf("error hijacking connection: %w", err)
	}
	answer.Body = nil
	if err := errors.Join(answer.Write(buffered), buffered.Flush()); err != nil {
		conn.Close()
	}
	return takenOver{Conn: conn, buffered: buffered.Reader}, nil
}

// join passes bytes both ways until one side is done, ctx ends or nothing went
// either way for too long. It closes both.
func (p *Proxy) join(ctx context.Context, client, back io.ReadWriteCloser) {
	group := tasks.New(ctx)
	moved := p.watchIdle(group)
	group.Go("stream-in", func(context.Context) error {
		defer group.Stop()
		return ended(io.Copy(back, moving{client, moved}))
	})
	group.Go("stream-out", func(context.Context) error {
		defer group.Stop()
		return ended(io.Copy(client, moving{back, moved}))
	})
	<-group.Context().Done()
	client.Close()
	back.Close()
	if err := group.Wait(); err != nil {
		p.log.Debug("a stream broke off", "err", err)
	}
}

// ended is not an error where it was us who closed the connection.
func ended(_ int64, err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// watchIdle ends the group when nothing moved for the idle timeout. The moments
// count in nanoseconds since it was called.
func (p *Proxy) watchIdle(group *tasks.Group) *movement {
	m := &movement{begun: time.Now()}
	if p.cfg.IdleTimeout <= 0 {
		return m
	}
	group.Go("stream-idle", func(ctx context.Context) error {
		timer := time.NewTimer(p.cfg.IdleTimeout)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
			}
			left := p.cfg.IdleTimeout - m.since(time.Now())
			if left <= 0 {
				p.log.Info("a stream is closed since it was idle", "timeout", p.cfg.IdleTimeout)
				group.Stop()
				return nil
			}
			timer.Reset(left)
		}
	})
	return m
}

// movement is when something went over a stream last.
type movement struct {
	begun time.Time
	last  atomic.Int64 // nanoseconds after begun
}

func (m *movement) now() { m.last.Store(int64(time.Since(m.begun))) }
func (m *movement) since(now time.Time) time.Duration {
	return now.Sub(m.begun) - time.Duration(m.last.Load())
}

// moving is a reader that notes when something came.
type moving struct {
	io.Reader
	moved *movement
}

func (m moving) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 {
		m.moved.now()
	}
	return n, err
}
