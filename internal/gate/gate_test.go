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

// TestShareOfOneOrder: one pod with many containers leaves places to others.
func TestShareOfOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(4, 0)
		var big atomic.Int32
		for range 50 {
			go func() {
				leave, err := g.Enter(t.Context(), true, 1)
				if err != nil {
					return // the test is over
				}
				big.Add(1)
				<-time.After(time.Minute)
				big.Add(-1)
				leave()
			}()
		}
		synctest.Wait()
		if big.Load() != 2 {
			t.Errorf("the pod of 50 containers holds %d of 4 places, want 2", big.Load())
		}
		for neighbour := range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			leave, err := g.Enter(ctx, false, int64(2+neighbour))
			if err != nil {
				t.Fatalf("neighbour %d waits behind it: %v", neighbour, err)
			}
			defer leave()
		}
		<-time.After(time.Hour) // 25 turns of a minute
		synctest.Wait()
		if big.Load() != 0 {
			t.Errorf("%d of the containers still have no place", big.Load())
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
