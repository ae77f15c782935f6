package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Source says what to follow, and through which client.
type Source struct {
	// Client is of the group and version of the resource.
	Client rest.Interface
	// Kind names the object in errors, such as "configmap".
	Kind string
	// Resource is the plural, such as "configmaps".
	Resource string
	// Namespace is empty for objects without, and for those of all namespaces.
	Namespace string
	// Name is that of a single object; it is not used by [Many].
	Name string
	// FieldSelector narrows down a [Many]; empty: all.
	FieldSelector string
}

// Object is a pointer to an API object.
type Object interface {
	comparable
	runtime.Object
	metav1.Object
}

const (
	// answerTime bounds a request that is to be answered at once: a list, a
	// single object, or the begin of a watch.
	answerTime = 30 * time.Second
	// watchTime is the least time that a watch lives; the most is twice that.
	// The stock kubelet's for single objects.
	watchTime = 30 * time.Minute
)

func (s Source) request() *rest.Request {
	return s.Client.Get().NamespaceIfScoped(s.Namespace, s.Namespace != "").Resource(s.Resource)
}

func (s Source) get(ctx context.Context, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return s.request().Name(s.Name).Do(ctx).Into(into)
}

// list asks for what the API server's cache holds now.
func (s Source) list(ctx context.Context, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	request := s.request().Param("resourceVersion", "0")
	if s.FieldSelector != "" {
		request.Param("fieldSelector", s.FieldSelector)
	}
	return request.Do(ctx).Into(into)
}

// watch returns once the API server has begun to send. From version "0" it
// sends what exists first. The caller stops it to free what the watch holds.
func (s Source) watch(ctx context.Context, fieldSelector, version string) (watch.Interface, error) {
	return s.open(ctx, s.watchRequest(fieldSelector, version))
}

// watchState is a watch that begins with the state at that version or later: an
// event for each object, and then a bookmark with the annotation
// k8s.io/initial-events-end (KEP-3157). Other than a watch from "0", it shows
// what is gone, and never the past.
func (s Source) watchState(ctx context.Context, fieldSelector, version string) (watch.Interface, error) {
	return s.open(ctx, s.watchRequest(fieldSelector, version).
		Param("sendInitialEvents", "true").
		Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)))
}

func (s Source) watchRequest(fieldSelector, version string) *rest.Request {
	seconds := int(watchTime.Seconds() * (1 + rand.Float64()))
	request := s.request().
		Param("watch", "true").
		Param("allowWatchBookmarks", "true").
		Param("resourceVersion", version).
		Param("timeoutSeconds", strconv.Itoa(seconds))
	if fieldSelector != "" {
		request.Param("fieldSelector", fieldSelector)
	}
	return request
}

func (s Source) open(ctx context.Context, request *rest.Request) (watch.Interface, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(answerTime, func() {
		cancel(fmt.Errorf("the watch did not begin within %v", answerTime))
	})
	defer late.Stop()
	w, err := request.Watch(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(err)
		return nil, err
	}
	return &cancelled{Interface: w, cancel: cancel}, nil
}

// cancelled is a watch whose context ends with it.
type cancelled struct {
	watch.Interface
	cancel context.CancelCauseFunc
}

func (c *cancelled) Stop() {
	c.Interface.Stop()
	c.cancel(context.Canceled)
}

// errEnded says that a watch ended as watches do.
var errEnded = errors.New("the watch ended")

// nextEvent waits for an event that tells of an object, or of a version.
func nextEvent[T Object](ctx context.Context, w watch.Interface) (watch.EventType, T, error) {
	var none T
	select {
	case <-ctx.Done():
		return "", none, ctx.Err()
	case event, open := <-w.ResultChan():
		if !open {
			return "", none, errEnded
		}
		if event.Type == watch.Error {
			return "", none, apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(T)
		if !ok {
			return "", none, fmt.Errorf("a watch brought a %T", event.Object)
		}
		return event.Type, object, nil
	}
}

// isExpired says that the API server does not know the version any more that a
// watch should begin at.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// mayPass says that a refusal may be over in a moment: the Node authorizer
// learns of a pod's binding a little after the node does.
func mayPass(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusForbidden
}
