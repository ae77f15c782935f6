package podactor

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Packer compresses the traces of all actors that share it. It exists because
// a compressor weighs more than the traces of a pod. Use NewPacker. Safe for
// concurrent use.
type Packer struct {
	mu  sync.Mutex
	w   *flate.Writer // made when first used
	buf bytes.Buffer
}

// NewPacker makes a packer.
func NewPacker() *Packer { return &Packer{} }

// pack is JSON, compressed unless p is nil.
func (p *Packer) pack(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil || p == nil {
		return plain, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf.Reset()
	if p.w == nil {
		if p.w, err = flate.NewWriter(&p.buf, flate.BestSpeed); err != nil {
			return nil, err
		}
	}
	p.w.Reset(&p.buf)
	if _, err := p.w.Write(plain); err != nil {
		return nil, err
	}
	if err := p.w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(p.buf.Bytes()), nil
}

// unpack is the way back; it shares nothing with other callers.
func (p *Packer) unpack(packed []byte, v any) error {
	if p != nil {
		plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		packed = plain
	}
	return json.Unmarshal(packed, v)
}
