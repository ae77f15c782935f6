package follow

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"nodekit.dev/internal/tasks"
)

const (
	// forbiddenPatience is how long Get waits for the authorizer to catch up.
	forbiddenPatience = 2 * time.Second
	// watchRest is how long after the first answer the watch begins. What changed
	// meanwhile is seen then.
	watchRest = 500 * time.Millisecond
)

// Run follows the object until ctx ends, or until it can not change any more.
func (o *One[T]) Run(ctx context.Context) {
	var pace pace
	patience := time.Now().Add(forbiddenPatience)
	for {
		err := o.session(ctx, &pace)
		wait := pace.next(err)
		switch left := time.Until(patience); {
		case ctx.Err() != nil, err == nil:
			return
		case errors.Is(err, errEnded), isExpired(err): // as watches do
		case mayPass(err) && left > 0:
			wait = min(wait, left) // who waits in Get is told when patience ends, not a doubled wait later
		default:
			o.failed(ctx, err)
		}
		if tasks.Pause(ctx, wait) != nil {
			return
		}
	}
}

// session reads the object and watches it until something ends that; nil: the
// object is final.
func (o *One[T]) session(ctx context.Context, pace *pace) error {
	if !o.answered() { // first of all: pods wait for it
		var none T
		object, err := o.read(ctx)
		if err != nil {
			return err
		}
		pace.reset()
		o.recovered()
		if object != none {
			return o.begin(ctx, object)
		}
	}
	return o.resume(ctx, pace)
}

// begin goes on from the first answer.
func (o *One[T]) begin(ctx context.Context, object T) error {
	from := object.GetResourceVersion()
	if o.set(object) {
		return nil
	}
	if err := tasks.Pause(ctx, watchRest); err != nil {
		return err
	}
	w, err := o.opts.watchState(ctx, o.byName(), from)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err): // it has no such watches (feature gate WatchList)
		return o.resume(ctx, &pace{})
	case err != nil:
		return err
	}
	defer w.Stop()
	return o.fold(ctx, w)
}

// resume begins a watch before it reads the object, so that no change falls
// between the two.
func (o *One[T]) resume(ctx context.Context, pace *pace) error {
	w, err := o.opts.watch(ctx, o.byName(), "0")
	if err != nil {
		return err
	}
	defer w.Stop()
	object, err := o.read(ctx)
	if err != nil {
		return err
	}
	pace.reset()
	o.recovered()
	if o.set(object) {
		return nil
	}
	return o.fold(ctx, w)
}

func (o *One[T]) byName() string {
	return fields.OneTermEqualSelector("metadata.name", o.opts.Name).String()
}

// read asks for the object itself; the zero T: there is none.
func (o *One[T]) read(ctx context.Context) (T, error) {
	var none T
	object := o.opts.New()
	err := o.opts.get(ctx, object)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, err
	}
	return object, nil
}

// fold takes in what the watch brings until it ends; nil: the object is final.
// Where the watch tells the state first, an object that is not part of that
// state is gone.
func (o *One[T]) fold(ctx context.Context, w watch.Interface) error {
	present := false
	for {
		kind, object, err := nextEvent[T](ctx, w)
		if err != nil {
			return err
		}
		switch kind {
		case watch.Added, watch.Modified:
			present = true
		case watch.Bookmark:
			if object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" && !present {
				var none T
				o.set(none)
			}
		case watch.Deleted, watch.Error:
		}
		if o.take(kind, object) {
			return nil
		}
	}
}

// take folds in one event, unless what is known is newer: a watch begins with
// what the server's cache holds, which may lag.
func (o *One[T]) take(kind watch.EventType, object T) (final bool) {
	switch kind {
	case watch.Added, watch.Modified:
		if o.newer(object) {
			return o.set(object)
		}
	case watch.Deleted:
		if o.newer(object) {
			var none T
			return o.set(none)
		}
	case watch.Bookmark, watch.Error:
	}
	return false
}
