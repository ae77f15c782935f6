package bench_test

import (
	"context"
	"fmt"
	"testing"

	"nodekit.dev/test/bench"
)

// TestCostDoesNotDependOnTheCrowd holds the figures that no load of the
// machine changes; `make bench` adds CPU time and larger crowds.
func TestCostDoesNotDependOnTheCrowd(t *testing.T) {
	costs, err := bench.Measure(t.Context(), bench.Options{Sizes: []int{50, 500}, Rounds: 3, Events: 100})
	if err != nil {
		t.Fatal(err)
	}
	few, many := costs[0], costs[1]
	for _, f := range []struct {
		name      string
		few, many float64
	}{
		{"calls per hint", few.Hint.Calls, many.Hint.Calls},
		{"allocations per hint", few.Hint.Allocs, many.Hint.Allocs},
		{"calls per restart", few.Restart.Calls, many.Restart.Calls},
		{"allocations per restart", few.Restart.Allocs, many.Restart.Allocs},
	} {
		if ratio := f.many / f.few; ratio < 0.8 || ratio > 1.2 {
			t.Errorf("%s: %.1f among %d pods, %.1f among %d: not within 20 %%", f.name, f.few, few.Pods, f.many, many.Pods)
		}
	}
	if few.Hint.Calls < 0.9 || few.Hint.Calls > 1.1 {
		t.Errorf("a hint took %.2f calls, want one look", few.Hint.Calls)
	}
}

func ExampleMeasure() {
	costs, err := bench.Measure(context.Background(), bench.Options{Sizes: []int{10}, Rounds: 1, Events: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f look per hint\n", costs[0].Hint.Calls)
	// Output: 1 look per hint
}

func BenchmarkEvent(b *testing.B) {
	for _, pods := range []int{1000, 10_000} {
		for _, kind := range []struct {
			name string
			do   func(*bench.Crowd, context.Context, int) error
		}{{"hint", (*bench.Crowd).Hint}, {"restart", (*bench.Crowd).Restart}} {
			b.Run(fmt.Sprintf("%s/pods=%d", kind.name, pods), func(b *testing.B) {
				c, err := bench.Start(b.Context(), b.TempDir(), pods)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := kind.do(c, b.Context(), i); err != nil {
						b.Fatal(err)
					}
				}
				if err := c.Stop(); err != nil {
					b.Error(err)
				}
			})
		}
	}
}
