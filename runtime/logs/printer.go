package logs

import (
	"errors"
	"io"
)

// stampOut is the stock kubelet's: nine digits, so that columns line up.
const stampOut = "2006-01-02T15:04:05.000000000Z07:00"

// errLimit ends the output at Options.LimitBytes.
var errLimit = errors.New("byte limit reached")

// printer writes lines as the options say.
type printer struct {
	opts Options
	to   map[string]io.Writer
	left int64 // bytes; below 0: no limit
	buf  []byte
}

func newPrinter(req Request) *printer {
	p := &printer{opts: req.Options, left: -1, to: map[string]io.Writer{Stdout: req.Stdout, Stderr: req.Stderr}}
	if req.LimitBytes != nil {
		p.left = *req.LimitBytes
	}
	return p
}

func (p *printer) print(l line) error {
	w := p.to[l.stream]
	if w == nil || l.at.Before(p.opts.Since) {
		return nil
	}
	p.buf = p.buf[:0]
	if p.opts.Timestamps && l.first {
		p.buf = append(l.at.AppendFormat(p.buf, stampOut), ' ')
	}
	p.buf = append(p.buf, l.text...)
	if l.last {
		p.buf = append(p.buf, '\n')
	}
	out := p.buf
	if p.left >= 0 {
		out = out[:min(p.left, int64(len(out)))]
		p.left -= int64(len(out))
	}
	if _, err := w.Write(out); err != nil {
		return err
	}
	if p.left == 0 {
		return errLimit
	}
	return nil
}
