package observe

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"nodekit.dev/runtime"
)

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// drained takes all hints; "*" is the hint to look at all pods.
func drained(q *hintQueue) []string {
	var out []string
	for hint, ok := q.take(); ok; hint, ok = q.take() {
		if hint.UID == "" {
			hint.UID = "*"
		}
		out = append(out, hint.UID)
	}
	return out
}

func TestHintsAreCoalescedInOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		add  []string
		want string
	}{
		{"none", nil, "[]"},
		{"order", []string{"b", "a", "b", "c", "a"}, "[b a c]"},
		{"all come first, once", []string{"a", "", "b", "", "a"}, "[* a b]"},
	} {
		q := newHintQueue()
		for _, uid := range tt.add {
			q.add(runtime.Hint{UID: uid})
		}
		if got := fmt.Sprint(drained(q)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestHintsKeepTheLatestTime(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for _, tt := range []struct {
		name string
		at   []time.Time
		want time.Time
	}{
		{"one", []time.Time{early}, early},
		{"in order", []time.Time{early, late}, late},
		{"out of order", []time.Time{late, early}, late},
		{"one of an unknown time may be later still", []time.Time{early, {}, late}, time.Time{}},
	} {
		q := newHintQueue()
		for _, at := range tt.at {
			q.add(runtime.Hint{UID: "a", At: at})
		}
		if hint, _ := q.take(); hint.At != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, hint.At, tt.want)
		}
	}
}

func TestHintsAreBounded(t *testing.T) {
	q := newHintQueue()
	for i := range maxPending {
		q.add(runtime.Hint{UID: fmt.Sprint(i)})
	}
	if n := len(q.order); n != maxPending {
		t.Errorf("%d hints wait, want %d", n, maxPending)
	}
	q.add(runtime.Hint{UID: "one more"})
	if got := fmt.Sprint(drained(q)); got != "[*]" {
		t.Errorf("more hints than fit give %s, want one look at all", got)
	}
	q.add(runtime.Hint{UID: "a"})
	if got := fmt.Sprint(drained(q)); got != "[a]" {
		t.Errorf("after that: %s", got)
	}
}
