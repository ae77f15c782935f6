package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nodekit.dev/internal/gate"
)

func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(1, 0)
		leave, err := g.Enter(t.Context(), false, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		enter := func(name string, begun bool, order int64) {
			go func() {
				leave, err := g.Enter(t.Context(), begun, order)
				if err != nil {
					t.Error(err)
					return
				}
				got = append(got, name)
				leave()
			}()
			synctest.Wait()
		}
		enter("young", false, 9)
		enter("old", false, 1)
		enter("old again", false, 1)
		enter("begun young", true, 9)
		enter("begun old", true, 1)
		leave()
		synctest.Wait()
		want := []string{"begun old", "begun young", "old", "old again", "young"}
		if !slices.Equal(got, want) {
			t.Errorf("order %q, want %q", got, want)
		}
	})
}

func TestWidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(3, 0)
		var inside, most, through atomic.Int32
		for i := range 20 {
			go func() {
				leave, err := g.Enter(t.Context(), false, int64(i))
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				<-time.After(time.Second)
				inside.Add(-1)
				through.Add(1)
				leave()
			}()
		}
		start := time.Now()
		for through.Load() < 20 {
			<-time.After(time.Second)
			synctest.Wait()
		}
		if took := time.Since(start); most.Load() != 3 || took != 7*time.Second {
			t.Errorf("at most %d at once, all through after %v; want 3 and 7 s", most.Load(), took)
		}
	})
}

func TestOneThatHangsDoesNotShutTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(1, 10*time.Second)
		hung, err := g.Enter(t.Context(), false, 0)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		leave, err := g.Enter(t.Context(), false, 1)
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("waited %v, want 10 s", waited)
		}
		hung() // comes back late: must not widen the gate
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Enter(ctx, false, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second caller got in: %v", err)
		}
		leave()
		if leave, err := g.Enter(t.Context(), false, 3); err != nil {
			t.Error(err)
		} else {
			leave()
		}
	})
}

func Example() {
	g := gate.New(2, 10*time.Second)
	leave, err := g.Enter(context.Background(), false, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer leave()
	fmt.Println("starting a container")
	// Output: starting a container
}
