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
// a compressor weighs more than the traces of a pod: there is one at a time,
// and none while all pods are quiet. Use NewPacker. Safe for concurrent use.
type Packer struct {
	mu   sync.Mutex
	idle sync.Pool // of *compressor; empties itself
}

type compressor struct {
	*flate.Writer
	to bytes.Buffer
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
	c, err := p.compressor()
	if err != nil {
		return nil, err
	}
	defer p.idle.Put(c)
	if _, err := c.Write(plain); err != nil {
		return nil, err
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(c.to.Bytes()), nil
}

// compressor gives one that is ready for new input.
func (p *Packer) compressor() (*compressor, error) {
	if c, ok := p.idle.Get().(*compressor); ok {
		c.to.Reset()
		c.Reset(&c.to)
		return c, nil
	}
	c := &compressor{}
	var err error
	c.Writer, err = flate.NewWriter(&c.to, flate.BestSpeed)
	return c, err
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
