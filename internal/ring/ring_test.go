package ring_test

import (
	"fmt"
	"slices"
	"testing"

	"nodekit.dev/internal/ring"
)

func TestRingKeepsTheNewest(t *testing.T) {
	for _, tc := range []struct {
		size, adds int
		want       []int
	}{
		{size: 0, adds: 3, want: nil},
		{size: 3, adds: 0, want: nil},
		{size: 3, adds: 2, want: []int{1, 2}},
		{size: 3, adds: 3, want: []int{1, 2, 3}},
		{size: 3, adds: 7, want: []int{5, 6, 7}},
		{size: -1, adds: 2, want: nil},
	} {
		r := ring.New[int](tc.size)
		for i := range tc.adds {
			r.Add(i + 1)
		}
		if got := r.Items(); !slices.Equal(got, tc.want) {
			t.Errorf("size %d after %d adds: %v, want %v", tc.size, tc.adds, got, tc.want)
		}
	}
}

func Example() {
	r := ring.New[string](2)
	r.Add("a")
	r.Add("b")
	r.Add("c")
	fmt.Println(r.Items())
	// Output: [b c]
}
