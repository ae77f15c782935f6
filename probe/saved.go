package probe

import (
	"cmp"
	"slices"
	"time"
)

// restoreWithin is how long what was restored is kept for containers that
// nobody watches yet: the pods of an API server that is away come late.
const restoreWithin = time.Hour

// Saved is what was last known of one run of a container. It is for a file,
// so that a restart of the agent changes nothing.
type Saved struct {
	ContainerID string         `json:"id"`
	Probes      map[Type]Tally `json:"probes"`
}

// Saved is what [Config].Restored takes after a restart, in order of container
// IDs. A container without an ID, or whose probes have no result yet, is not in
// it. What was restored and is not watched stays in it for an hour after Run
// began.
func (m *Manager) Saved() []Saved {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.began.IsZero() && time.Since(m.began) > restoreWithin {
		clear(m.restored)
	}
	var list []Saved
	for id, probes := range m.restored {
		list = append(list, Saved{id, probes})
	}
	for _, pod := range m.pods {
		for _, r := range pod.runs {
			if probes := r.tallies(); len(probes) > 0 && r.c.ID != "" {
				list = append(list, Saved{r.c.ID, probes})
			}
		}
	}
	slices.SortFunc(list, func(a, b Saved) int { return cmp.Compare(a.ContainerID, b.ContainerID) })
	return list
}

// Changes holds a token when Saved may give something else than before. One
// reader takes it.
func (m *Manager) Changes() <-chan struct{} { return m.changes }

// tallies are the results of a run that came from checks.
func (r *run) tallies() map[Type]Tally {
	probes := map[Type]Tally{}
	for _, p := range r.probes {
		if p != nil && p.tally.Last != Unknown {
			probes[p.typ] = p.tally
		}
	}
	return probes
}
