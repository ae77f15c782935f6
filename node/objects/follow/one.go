package follow

import (
	"context"
	"log/slog"
	"strconv"
	"sync"

	"nodekit.dev/node/objects"
)

// Options say what a [One] follows and how.
type Options[T Object] struct {
	Source
	// New makes an empty object to decode into.
	New func() T
	// Trim takes away what nobody reads, to save memory; nil: nothing.
	Trim func(T)
	// Final says that an object can not change any more: it is not watched
	// further. nil: none is.
	Final func(T) bool
	// Changed is called when there is another answer than Get may have given
	// before. It must not block; nil: nobody listens.
	Changed func()
	// Log takes what went wrong; nil: nobody reads it.
	Log *slog.Logger
}

// One follows a single object by its name. Use [NewOne].
//
// It reads the object itself, not a cache, and watches from there: the first
// answer is as new as the question, and no change after it is missed. The watch
// begins [watchRest] later, so that a pod's start does not wait for its cost, and
// what can not change is never watched.
type One[T Object] struct {
	opts Options[T]

	mu     sync.Mutex
	answer answer[T]
	asked  bool          // somebody got an answer, or an error
	ailing bool          // the last session failed, and the log has it
	news   chan struct{} // closed when the answer changes
}

// answer is what is known. Without known, err says why, once there is a reason.
type answer[T Object] struct {
	known  bool
	object T // the zero T: there is no such object
	err    error
}

// NewOne allocates; nothing happens before Run.
func NewOne[T Object](opts Options[T]) *One[T] {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &One[T]{opts: opts, news: make(chan struct{})}
}

// Get returns the object as it is known now. It waits for the first answer, or
// for the reason why there is none, until ctx ends.
func (o *One[T]) Get(ctx context.Context) (T, error) {
	for {
		o.mu.Lock()
		now, news := o.answer, o.news
		if now.known || now.err != nil {
			o.asked = true
			o.mu.Unlock()
			return now.object, o.verdict(now)
		}
		o.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			o.mu.Lock()
			o.asked = true
			o.mu.Unlock()
			var none T
			return none, o.unreachable(context.Cause(ctx))
		}
	}
}

func (o *One[T]) verdict(a answer[T]) error {
	var none T
	switch {
	case !a.known:
		return o.unreachable(a.err)
	case a.object == none:
		return &objects.NotFoundError{Kind: o.opts.Kind, Namespace: o.opts.Namespace, Name: o.opts.Name}
	}
	return nil
}

func (o *One[T]) unreachable(err error) error {
	return &objects.UnreachableError{Kind: o.opts.Kind, Namespace: o.opts.Namespace, Name: o.opts.Name, Err: err}
}

// answered says whether it is known what the object is, or that there is none.
func (o *One[T]) answered() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.answer.known
}

func (o *One[T]) newer(object T) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none T
	if !o.answer.known || o.answer.object == none {
		return true
	}
	return version(object.GetResourceVersion()) > version(o.answer.object.GetResourceVersion())
}

// version reads a resource version, which is a number that grows. One that is
// no number is the oldest.
func version(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}

// set stores what the object is now and says whether it stays so for ever.
func (o *One[T]) set(object T) (final bool) {
	var none T
	if object != none {
		if o.opts.Trim != nil {
			o.opts.Trim(object)
		}
		final = o.opts.Final != nil && o.opts.Final(object)
	}
	o.mu.Lock()
	same := o.answer.known && (object == none) == (o.answer.object == none) &&
		(object == none || object.GetUID() == o.answer.object.GetUID() && object.GetResourceVersion() == o.answer.object.GetResourceVersion())
	if same {
		o.mu.Unlock()
		return final
	}
	o.answer = answer[T]{known: true, object: object}
	tell := o.wake()
	o.mu.Unlock()
	if tell {
		o.opts.Changed()
	}
	return final
}

// failed notes why there is no answer, unless there is an older one.
func (o *One[T]) failed(ctx context.Context, err error) {
	o.mu.Lock()
	known, logged := o.answer.known, o.ailing
	o.ailing = true
	if !known {
		waiting := o.answer.err == nil
		o.answer.err = err
		if waiting {
			o.wake()
		}
	}
	o.mu.Unlock()
	if !logged {
		o.opts.Log.WarnContext(ctx, "an object can not be followed; trying again", "kind", o.opts.Kind,
			"namespace", o.opts.Namespace, "name", o.opts.Name, "known", known, "err", err)
	}
}

func (o *One[T]) recovered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ailing = false
}

// wake lets those go on that wait in Get. It says whether to call Changed. The
// lock is held.
func (o *One[T]) wake() bool {
	close(o.news)
	o.news = make(chan struct{})
	return o.asked && o.opts.Changed != nil
}
