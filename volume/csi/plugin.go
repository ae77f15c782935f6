package csi

import (
	"fmt"
	"log/slog"
	"sync"

	"nodekit.dev/volume"
)

// Plugin is a volume.Plugin for the volumes of CSI drivers. Use New. Safe for
// concurrent use.
type Plugin struct {
	cfg     Config
	parts   Parts
	log     *slog.Logger
	layout  layout
	locks   locks
	drivers drivers
	boot    func() (string, error)
	undone  undone
}

var _ volume.Plugin = (*Plugin)(nil)

// New checks the configuration. It does no I/O.
func New(cfg Config, parts Parts, log *slog.Logger) (*Plugin, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("csi: %w", err)
	}
	if parts.Connect == nil {
		parts.Connect = Sockets{}
	}
	if parts.Wake == nil {
		parts.Wake = func(string) {}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	cfg = cfg.withDefaults()
	return &Plugin{
		cfg: cfg, parts: parts, log: log, layout: layout{cfg.RootDir},
		locks:   locks{held: map[volumeKey]*lock{}},
		drivers: drivers{byName: map[string][]*driver{}, waiting: map[string]map[string]bool{}, changed: make(chan struct{})},
		boot:    sync.OnceValues(bootID),
		undone:  undone{known: map[volumeKey]*leftover{}, wake: make(chan struct{}, 1)},
	}, nil
}

// Name implements [volume.Plugin].
func (*Plugin) Name() string { return Name }

// Supports implements [volume.Plugin].
func (*Plugin) Supports(s volume.Source) bool {
	if pv := s.PersistentVolume; pv != nil {
		return pv.Spec.CSI != nil
	}
	return s.Volume.CSI != nil
}
