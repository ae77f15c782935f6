package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRatio(t *testing.T) {
	p := Pairs{
		Bare:  []time.Duration{100, 200, 1000},
		Agent: []time.Duration{130, 220, 5000},
	}
	if got := p.Ratio(0); got != 1.3 {
		t.Errorf("median of 1.3, 1.1 and 5: %v", got)
	}
	if got := p.Ratio(20); got != 1.1 {
		t.Errorf("median of 1.1, 1.0 and 4.98: %v", got)
	}
}

func TestTakeTurns(t *testing.T) {
	var order []string
	turn := func(who string, took time.Duration) Turn {
		return func(_ context.Context, i int) (start, stop time.Duration, err error) {
			order = append(order, fmt.Sprint(who, i))
			return took * time.Duration(i), took, nil
		}
	}
	got, err := TakeTurns(t.Context(), turn("bare", 1), turn("agent", 10), 2)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(order, " "); all != "bare0 agent0 agent1 bare1 bare2 agent2" {
		t.Errorf("order %s", all)
	}
	if text := fmt.Sprint(got); text != "{{[1ns 2ns] [10ns 20ns]} {[1ns 1ns] [10ns 10ns]}}" {
		t.Errorf("got %s", text)
	}
}
