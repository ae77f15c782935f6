package observe

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
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
			q.add(uid)
		}
		if got := fmt.Sprint(drained(q)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestHintsAreBounded(t *testing.T) {
	q := newHintQueue()
	for i := range maxPending {
		q.add(fmt.Sprint(i))
	}
	if n := len(q.order); n != maxPending {
		t.Errorf("%d hints wait, want %d", n, maxPending)
	}
	q.add("one more")
	if got := fmt.Sprint(drained(q)); got != "[*]" {
		t.Errorf("more hints than fit give %s, want one look at all", got)
	}
	q.add("a")
	if got := fmt.Sprint(drained(q)); got != "[a]" {
		t.Errorf("after that: %s", got)
	}
}
