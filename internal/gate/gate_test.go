package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		inside, most := 0, 0
		for i := range 20 {
			go func() {
				leave, _ := g.Enter(t.Context(), false, int64(i))
				inside++ // the bubble runs on, but only between waits
				most = max(most, inside)
				time.Sleep(time.Second) // fake time: holds the place
				inside--
				leave()
			}()
			synctest.Wait()
		}
		start := time.Now()
		time.Sleep(time.Minute) // fake time
		synctest.Wait()
		if most != 3 || inside != 0 {
			t.Errorf("at most %d at once, %d left inside; want 3 and 0", most, inside)
		}
		_ = start
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
