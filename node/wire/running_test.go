package wire

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestPartsEndInReverse: what a part writes at its end still finds the parts
// that it uses, which were made before it.
func TestPartsEndInReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		part := func(name string, takes time.Duration) Part {
			return Part{name, func(ctx context.Context) error {
				<-ctx.Done()
				<-time.After(takes)
				ended = append(ended, name)
				return ctx.Err()
			}}
		}
		r := runParts(t.Context(), []Part{part("connection", 0), part("events", time.Second), part("registration", 2*time.Second)})
		synctest.Wait()
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if want := []string{"registration", "events", "connection"}; !slices.Equal(ended, want) {
			t.Errorf("ended: %v, want %v", ended, want)
		}
	})
}

// TestPartThatFailsEndsAll, and what it said is told, as is what fails at the end.
func TestPartThatFailsEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, late := errors.New("broken"), errors.New("late")
		ended := false
		r := runParts(t.Context(), []Part{
			{"waits", func(ctx context.Context) error { <-ctx.Done(); ended = true; return ctx.Err() }},
			{"fails", func(context.Context) error { return broken }},
		})
		synctest.Wait()
		if !ended || r.Context().Err() == nil {
			t.Error("the other part runs on")
		}
		if err := r.end(); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
		r = runParts(t.Context(), []Part{{"fails late", func(ctx context.Context) error { <-ctx.Done(); return late }}})
		synctest.Wait()
		if err := r.end(); !errors.Is(err, late) {
			t.Errorf("%v", err)
		}
	})
}
