package volume

import (
	"sync"
	"time"
)

// ledger is what the manager remembers for measurements alone. It is safe to
// lose, and no decision depends on it.
type ledger struct {
	mu      sync.Mutex
	asked   map[volumeID]time.Time // first try of what is not mounted yet
	plugins map[volumeID]string    // of what is mounted, as [Place.Kind]
	found   Found
}

// Census counts volumes.
type Census struct {
	// Desired are the volumes of the pods that are followed or mounted for,
	// Mounted those that are mounted, by plugin, as [Place.Kind].
	Desired, Mounted map[string]int
	Found
}

// Found counts what the host had of volumes that an earlier agent mounted.
type Found struct {
	// Volumes were found; Failed of them could not be made out.
	Volumes, Failed uint64
	// Cleaned were removed although no plugin here knows them; CleanFailed could
	// not be.
	Cleaned, CleanFailed uint64
}

// ask notes when somebody first wanted the volume mounted.
func (l *ledger) ask(id volumeID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.asked[id]; !known {
		l.asked[id] = now
	}
}

// mounted notes a volume, and says since when it was wanted.
func (l *ledger) mounted(id volumeID, plugin string) (since time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plugins[id] = plugin
	since, ok = l.asked[id]
	delete(l.asked, id)
	return since, ok
}

// seen notes a volume that the host has mounted.
func (l *ledger) seen(id volumeID, plugin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.plugins[id]
	if _, ours := l.asked[id]; known || ours {
		return
	}
	l.plugins[id] = plugin
	l.found.Volumes++
}

func (l *ledger) count(which func(*Found) *uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*which(&l.found)++
}

func (l *ledger) unmounted(id volumeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.plugins, id)
	delete(l.asked, id)
}

// forget drops all volumes of a pod.
func (l *ledger) forget(uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.plugins {
		if id.uid == uid {
			delete(l.plugins, id)
		}
	}
	for id := range l.asked {
		if id.uid == uid {
			delete(l.asked, id)
		}
	}
}

// Census counts the volumes that the manager knows of, from memory: after a
// restart those of a pod count once somebody asked what it has mounted. It never
// blocks.
func (m *Manager) Census() Census {
	pods := m.upkeep.followed()
	l := &m.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	c := Census{Desired: map[string]int{}, Mounted: map[string]int{}, Found: l.found}
	for _, plugin := range l.plugins {
		c.Mounted[plugin]++
	}
	for _, pod := range pods {
		for _, v := range pod.Spec.Volumes {
			if plugin := l.plugins[volumeID{string(pod.UID), v.Name}]; plugin != "" {
				c.Desired[plugin]++
			} else if p, err := m.supporting(Source{Volume: v}); err == nil {
				c.Desired[withDriver(p.Name(), Source{Volume: v}.Driver())]++
			}
		}
	}
	return c
}
