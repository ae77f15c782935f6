package expand

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"nodekit.dev/internal/tasks"
)

// watchPause is how long a watch that ended stays so.
const watchPause = 5 * time.Second

// watch has the claim looked at whenever it changed, as long as this node is
// let. What it misses, the next look finds.
func (f *followed) watch(ctx context.Context) {
	for !f.unwatchable.Load() {
		err := f.watchOnce(ctx)
		if apierrors.IsForbidden(err) && !f.unwatchable.Swap(true) {
			f.parts.Log.DebugContext(ctx, "this node may not watch claims; they are read from time to time", "interval", f.cfg.Interval)
		}
		if f.unwatchable.Load() || tasks.Pause(ctx, watchPause) != nil {
			return
		}
	}
}

func (f *followed) watchOnce(ctx context.Context) error {
	claim := f.current().Claim
	w, err := f.parts.Core.Get().Namespace(claim.Namespace).Resource("persistentvolumeclaims").
		VersionedParams(&metav1.ListOptions{
			Watch: true, AllowWatchBookmarks: true,
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, claim.Name).String(),
		}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			f.look()
		case watch.Error:
			return apierrors.FromObject(event.Object)
		case watch.Bookmark:
		}
	}
	return nil
}
