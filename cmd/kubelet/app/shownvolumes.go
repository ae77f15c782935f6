package app

import (
	"nodekit.dev/metrics/volumemetrics"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/wire"
)

// shownVolumes are the agent's volumes for the metrics, which are made before it.
type shownVolumes struct {
	contents *wire.Contents
	stats    wire.VolumeStats
}

// populate has the agent fill in its parts.
func (s *shownVolumes) populate() nodefx.Option { return nodefx.Populate(&s.contents, &s.stats) }

// config reads them when the metrics are shown, which is after the agent was made.
func (s *shownVolumes) config() volumemetrics.Config {
	return volumemetrics.Config{
		Claims: func() []volumemetrics.Claim {
			if s.stats == nil {
				return nil
			}
			return volumemetrics.Claims(s.stats.All())
		},
		Census: func() volumemetrics.Census {
			if s.contents == nil {
				return volumemetrics.Census{}
			}
			return volumemetrics.CensusOf(s.contents.Census())
		},
	}
}
