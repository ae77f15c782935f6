package review_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"nodekit.dev/node/server/internal/review"
)

// TestAsk tries again where that may help, five times at most.
func TestAsk(t *testing.T) {
	group := schema.GroupResource{Resource: "tokenreviews"}
	for name, row := range map[string]struct {
		err   error
		fails int // how often before it works
		calls int
		works bool
	}{
		"at once":              {nil, 0, 1, true},
		"busy, then works":     {apierrors.NewTooManyRequests("busy", 1), 2, 3, true},
		"internal, then works": {apierrors.NewInternalError(errors.New("x")), 4, 5, true},
		"internal for ever":    {apierrors.NewInternalError(errors.New("x")), 9, 5, false},
		"forbidden":            {apierrors.NewForbidden(group, "", errors.New("x")), 9, 1, false},
		"nobody there":         {errors.New("connection refused"), 9, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				_, err := review.Ask(t.Context(), func(context.Context) (int, error) {
					calls++
					if calls <= row.fails {
						return 0, row.err
					}
					return 0, nil
				})
				if calls != row.calls || (err == nil) != row.works {
					t.Errorf("%d calls, %v", calls, err)
				}
			})
		})
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		want := apierrors.NewInternalError(errors.New("x"))
		_, err := review.Ask(ctx, func(context.Context) (int, error) { return 0, want })
		if !errors.Is(err, want) || time.Since(begun) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// TestCacheKeeps answers as long as they say, and errors never.
func TestCacheKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := review.NewCache[int](10)
		calls := 0
		get := func(ttl time.Duration, err error) (int, error) {
			return c.Get(t.Context(), "key", func(context.Context) (int, time.Duration, error) {
				calls++
				return calls, ttl, err
			})
		}
		expect := func(got int, err error, want int) {
			t.Helper()
			if got != want || err != nil {
				t.Errorf("got %d, %v, want %d", got, err, want)
			}
		}
		failed := errors.New("no")
		if _, err := get(time.Minute, failed); !errors.Is(err, failed) {
			t.Error(err)
		}
		v, err := get(time.Minute, nil)
		expect(v, err, 2)
		time.Sleep(59 * time.Second) // fake time
		v, err = get(time.Minute, nil)
		expect(v, err, 2)
		time.Sleep(time.Second) // fake time
		v, err = get(0, nil)
		expect(v, err, 3)
		v, err = get(time.Minute, nil)
		expect(v, err, 4)
	})
}

// TestCacheAsksOnce for all who ask at the same time. When who asks goes away,
// one of those who wait asks in his place; nobody waits for longer than he wants.
func TestCacheAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := review.NewCache[string](10)
		calls := 0
		ask := func(ctx context.Context) (string, time.Duration, error) {
			calls++
			select {
			case <-time.After(time.Minute):
				return fmt.Sprintf("answer %d", calls), time.Hour, nil
			case <-ctx.Done():
				return "", 0, ctx.Err()
			}
		}
		leaves, leave := context.WithCancel(t.Context())
		hurried, cancel := context.WithTimeout(t.Context(), 45*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Get(leaves, "k", ask); !errors.Is(err, context.Canceled) {
				t.Errorf("who left: %v", err)
			}
		})
		synctest.Wait()
		for range 5 {
			wg.Go(func() {
				if got, err := c.Get(t.Context(), "k", ask); !strings.HasPrefix(got, "answer ") || err != nil {
					t.Errorf("who waited: %q, %v", got, err)
				}
			})
		}
		wg.Go(func() {
			if _, err := c.Get(hurried, "k", ask); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who was in a hurry: %v", err)
			}
		})
		synctest.Wait()
		time.Sleep(30 * time.Second) // fake time
		leave()
		wg.Wait()
		// Of the six that waited, he who is in a hurry may have asked first.
		if calls != 2 && calls != 3 {
			t.Errorf("%d calls", calls)
		}
	})
}

// TestCacheTimeoutIsShared: an API server that does not answer is not asked by
// one after the other.
func TestCacheTimeoutIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := review.NewCache[int](10)
		begun := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, err := c.Get(t.Context(), "k", func(ctx context.Context) (int, time.Duration, error) {
					ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
					defer cancel()
					<-ctx.Done()
					return 0, 0, ctx.Err()
				})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("all were answered after %v", took)
		}
	})
}

// TestCacheIsBounded, and a panic of who is asked is an error.
func TestCacheIsBounded(t *testing.T) {
	c := review.NewCache[int](3)
	calls := 0
	for range 2 {
		for key := range 10 {
			_, err := c.Get(t.Context(), fmt.Sprint(key), func(context.Context) (int, time.Duration, error) {
				calls++
				return key, time.Hour, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	if calls < 17 { // three of ten could be kept
		t.Errorf("%d calls", calls)
	}
	if _, err := c.Get(t.Context(), "panic", func(context.Context) (int, time.Duration, error) { panic("boom") }); err == nil {
		t.Error("no error")
	}
}
