package register

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// doubled is base, doubled n times, at most most.
func doubled(base time.Duration, n int, most time.Duration) time.Duration {
	return min(base<<min(n, 16), most)
}

// spread makes a pause up to a share longer, at random.
func spread(d time.Duration, share float64) time.Duration {
	return d + time.Duration(float64(d)*share*rand.Float64())
}

// pause returns false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// explain says what to do about errors that do not go away by themselves.
func explain(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && strings.HasPrefix(what, "node "):
		return fmt.Errorf("%s: %w: it is not there yet, or was deleted; an agent that registers its node does so when it starts", what, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w: the API server does not accept this node's credentials; see the kubeconfig and the client certificate in it", what, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: the credentials must be those of user system:node:NAME of the group system:nodes", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func podCIDRs(n *corev1.Node) string { return strings.Join(n.Spec.PodCIDRs, ",") }

// grumbles keep a failure that goes on from filling the log: it is told when it
// begins, when it changes, and every minute.
type grumbles map[string]grumble

type grumble struct {
	text  string
	at    time.Time
	since time.Time // it began
}

const grumbleEvery = time.Minute

func newGrumbles() grumbles { return grumbles{} }

// worth compares the first line only, since what follows is the stack of a panic,
// and no digits: errors of the network name another port each time.
func (g grumbles) worth(about, text string, now time.Time) bool {
	text, _, _ = strings.Cut(text, "\n")
	text = strings.Map(withoutDigits, text)
	last, goesOn := g[about]
	if goesOn && last.text == text && now.Sub(last.at) < grumbleEvery {
		return false
	}
	since := now
	if goesOn {
		since = last.since
	}
	g[about] = grumble{text, now, since}
	return true
}

func withoutDigits(r rune) rune {
	if '0' <= r && r <= '9' {
		return -1
	}
	return r
}

func (g grumbles) settle(about string) { delete(g, about) }

// over settles what had failed, and returns for how long; false: it had not.
func (g grumbles) over(about string, now time.Time) (lasted time.Duration, failed bool) {
	last, failed := g[about]
	g.settle(about)
	return now.Sub(last.since), failed
}

// log says whether a failure is to be logged. One that ends with ctx is none.
func (g grumbles) log(ctx context.Context, about string, err error) bool {
	return ctx.Err() == nil && g.worth(about, err.Error(), time.Now())
}

// more is log for what may be another sign of the same failure.
func (g grumbles) more(ctx context.Context, about string, err error) bool {
	text := err.Error()
	if last, ok := g[about]; ok {
		text = last.text
	}
	return ctx.Err() == nil && g.worth(about, text, time.Now())
}
