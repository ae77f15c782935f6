package events

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The stock limits. Events that differ only in their message are told as one
// after similarMost of them within similarFor. One object may have spamBurst
// events of a type, and one more every spamRefill.
const (
	similarMost = 10
	similarFor  = 10 * time.Minute
	spamBurst   = 25
	spamRefill  = 5 * time.Minute
	rememberedN = 4096
)

const combined = "(combined from similar events): "

// series is one Event object: what happened once, or over and over.
type series struct {
	event   corev1.Event // as it is to be told
	created bool         // the API server has it, by its name
	queued  bool
}

// group counts the messages of events that are equal but for those.
type group struct {
	messages map[string]bool
	last     time.Time
}

// budget is a token bucket.
type budget struct {
	tokens float64
	filled time.Time
}

// correlator turns what happens into series. It is for use under a lock.
type correlator struct {
	groups  *recent[*group]
	series  *recent[*series]
	budgets *recent[*budget]
}

func newCorrelator() *correlator {
	return &correlator{
		groups: newRecent[*group](rememberedN), series: newRecent[*series](rememberedN), budgets: newRecent[*budget](rememberedN),
	}
}

// observe counts an event in and returns its series; tell is false when the
// object has told too much already.
func (c *correlator) observe(e corev1.Event, now time.Time) (s *series, tell bool) {
	key := keyOf(e, e.InvolvedObject.FieldPath, e.Reason, e.Message)
	similar := keyOf(e, e.Reason)
	if c.groups.get(similar, func() *group { return &group{} }).add(e.Message, now) {
		key, e.Message = similar, combined+e.Message
	}
	s = c.series.get(key, func() *series { return &series{} })
	s.count(e)
	spam := c.budgets.get(keyOf(e), func() *budget { return &budget{tokens: spamBurst, filled: now} })
	return s, spam.take(now)
}

// add says whether the message is one of too many. Those that came before there
// were too many go on as they began.
func (g *group) add(message string, now time.Time) bool {
	if now.Sub(g.last) > similarFor {
		g.messages = map[string]bool{}
	}
	g.last = now
	switch {
	case g.messages[message]:
		return false
	case len(g.messages) == similarMost-1:
		return true
	}
	g.messages[message] = true
	return false
}

// count makes e the newest of the series, under the name of its first.
func (s *series) count(e corev1.Event) {
	if s.event.Count > 0 {
		e.Name, e.FirstTimestamp, e.Count = s.event.Name, s.event.FirstTimestamp, s.event.Count+1
	}
	s.event = e
}

func (b *budget) take(now time.Time) bool {
	b.tokens = min(spamBurst, b.tokens+now.Sub(b.filled).Seconds()/spamRefill.Seconds())
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// keyOf names the object and the type of an event, and what else it is told by.
func keyOf(e corev1.Event, also ...string) string {
	o := e.InvolvedObject
	return strings.Join(append([]string{o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion, e.Type}, also...), "\x00")
}

// patchOf is what changes when a series goes on.
func patchOf(e corev1.Event) map[string]any {
	return map[string]any{"count": e.Count, "message": e.Message, "lastTimestamp": metav1.Time{Time: e.LastTimestamp.Time}}
}
