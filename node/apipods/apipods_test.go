package apipods_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/clientlog/clientlogtest"
	"nodekit.dev/node"
	"nodekit.dev/node/apipods"
	"nodekit.dev/node/internal/podapitest"
	"nodekit.dev/runtime"
)

// listener is the node and the status writer: it keeps what it is told.
type listener struct {
	mu      sync.Mutex
	told    []string // "seen web", "gone web", "sync", "send web", ...
	updates []node.SourceUpdate
}

func (l *listener) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, fmt.Sprintf(format, args...))
}

func (l *listener) PodSeen(pod *corev1.Pod) { l.add("seen %s %s", pod.UID, pod.ResourceVersion) }
func (l *listener) PodGone(pod *corev1.Pod) { l.add("gone %s", pod.UID) }
func (l *listener) InSync()                 { l.add("sync") }

// took returns and forgets what it was told.
func (l *listener) took() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := l.told
	l.told = nil
	return told
}

func (l *listener) last() node.SourceUpdate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.updates) == 0 {
		return node.SourceUpdate{}
	}
	return l.updates[len(l.updates)-1]
}

func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.updates)
}

// follow runs a source on the server in this bubble.
func follow(t *testing.T, api *podapitest.Server) *listener {
	t.Helper()
	l := &listener{}
	source, err := apipods.New(apipods.DefaultConfig("worker-1"), api.Client(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	updates := make(chan node.SourceUpdate)
	done := make(chan error, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			select {
			case update := <-updates:
				for _, pod := range update.Pods {
					l.add("send %s", pod.UID)
				}
				l.mu.Lock()
				l.updates = append(l.updates, update)
				l.mu.Unlock()
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() { done <- source.Run(ctx, updates) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		<-read
	})
	synctest.Wait()
	return l
}

func pod(uid, name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: "default", Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}},
		Spec:       corev1.PodSpec{NodeName: "worker-1", Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

func names(pods []*corev1.Pod) (list []string) {
	for _, p := range pods {
		list = append(list, string(p.UID))
	}
	slices.Sort(list)
	return list
}

func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestListThenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := podapitest.New()
		api.Create(pod("a", "a"))
		api.Create(pod("elsewhere", "elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "worker-2" }))
		api.Create(pod("m", "m", func(p *corev1.Pod) {
			p.Annotations = map[string]string{runtime.AnnotationConfigMirror: "x"}
		}))
		l := follow(t, api)
		first := l.last()
		if first.Partial || !slices.Equal(names(first.Pods), []string{"a"}) {
			t.Fatalf("first update %+v", first)
		}
		if told := l.took(); len(told) != 5 || told[2] != "sync" || !slices.Contains(told, "send a") {
			t.Errorf("told %q", told)
		}
		given := first.Pods[0]
		if given.Annotations[runtime.AnnotationConfigSource] != "api" || given.Annotations[runtime.AnnotationConfigSeen] == "" || given.ManagedFields != nil {
			t.Errorf("given %+v", given.ObjectMeta)
		}

		api.Create(pod("b", "b"))
		synctest.Wait()
		if next := l.last(); !next.Partial || !slices.Equal(names(next.Pods), []string{"b"}) {
			t.Errorf("update %+v", next)
		}
		api.Delete("default", "b", 0)
		synctest.Wait()
		if next := l.last(); !next.Partial || len(next.Pods) != 0 || !slices.Equal(next.Removed, []types.UID{"b"}) {
			t.Errorf("update %+v", next)
		}
		before := l.count()
		api.Delete("default", "m", 0)
		synctest.Wait()
		if l.count() != before {
			t.Errorf("the node was told of a mirror pod: %+v", l.last())
		}
		if told := l.took(); told[len(told)-1] != "gone m" {
			t.Errorf("told %q", told)
		}
	})
}

func TestWhatIsNewsForTheNode(t *testing.T) {
	condition := func(kind corev1.PodConditionType) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
		}
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		news   bool
	}{
		"a label":                {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, true},
		"an annotation":          {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, true},
		"an image":               {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:2" }, true},
		"a debug container":      {func(p *corev1.Pod) { p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}} }, true},
		"a readiness gate":       {condition("example.com/gate"), true},
		"an eviction":            {condition(corev1.DisruptionTarget), true},
		"ended by others":        {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"a resource claim":       {func(p *corev1.Pod) { p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu"}} }, true},
		"our own phase":          {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, false},
		"our own condition":      {condition(corev1.PodReady), false},
		"our own container":      {func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}} }, false},
		"a finalizer":            {func(p *corev1.Pod) { p.Finalizers = []string{"example.com/x"} }, false},
		"who has changed fields": {func(p *corev1.Pod) { p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "me"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := podapitest.New()
				api.Create(pod("a", "a"))
				l := follow(t, api)
				seen := l.last().Pods[0].Annotations[runtime.AnnotationConfigSeen]
				l.took()
				before := l.count()
				after(time.Second)
				api.Update("default", "a", tc.change)
				synctest.Wait()
				if told := l.took(); len(told) == 0 {
					t.Error("the writer of statuses was not told")
				}
				if got := l.count() > before; got != tc.news {
					t.Fatalf("the node was told: %v, want %v", got, tc.news)
				}
				if tc.news && l.last().Pods[0].Annotations[runtime.AnnotationConfigSeen] != seen {
					t.Error("the pod was seen first at another time now")
				}
			})
		})
	}
}

func TestDeletionWithGraceReachesTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := podapitest.New()
		api.Create(pod("a", "a"))
		l := follow(t, api)
		api.Delete("default", "a", 30)
		synctest.Wait()
		if p := l.last().Pods; len(p) != 1 || p[0].DeletionTimestamp == nil || *p[0].DeletionGracePeriodSeconds != 30 {
			t.Fatalf("update %+v", l.last())
		}
		api.Delete("default", "a", 5)
		synctest.Wait()
		if p := l.last().Pods; len(p) != 1 || *p[0].DeletionGracePeriodSeconds != 5 {
			t.Fatalf("update %+v", l.last())
		}
	})
}

func TestNoPodOfTheAPIPassesForAStaticOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := podapitest.New()
		api.Create(pod("a", "a", func(p *corev1.Pod) {
			p.Annotations = map[string]string{runtime.AnnotationConfigSource: "file", runtime.AnnotationConfigSeen: "yesterday"}
		}))
		l := follow(t, api)
		if got := l.last().Pods[0].Annotations; got[runtime.AnnotationConfigSource] != "api" || got[runtime.AnnotationConfigSeen] == "yesterday" {
			t.Errorf("annotations %v", got)
		}
	})
}

func TestServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := podapitest.New()
		api.Create(pod("a", "a"))
		api.Away(true)
		l := follow(t, api)
		after(time.Hour)
		if told := l.took(); l.count() != 0 || len(told) != 0 {
			t.Fatalf("told %q, updates %d", told, l.count())
		}
		api.Away(false)
		after(15 * time.Second)
		if !slices.Equal(names(l.last().Pods), []string{"a"}) {
			t.Fatalf("update %+v", l.last())
		}

		// While it is away again, one pod is made anew under its name and one goes.
		api.Create(pod("b", "b"))
		synctest.Wait()
		api.Away(true)
		after(2 * time.Minute)
		before := l.count()
		api.Delete("default", "a", 0)
		api.Create(pod("a2", "a"))
		api.Delete("default", "b", 0)
		l.took()
		api.Away(false)
		after(15 * time.Second)
		told := l.took()
		if told[0] != "sync" || !slices.Contains(told, "gone a") || !slices.Contains(told, "gone b") || !slices.Contains(told, "send a2") {
			t.Errorf("told %q", told)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		var removed []types.UID
		for _, update := range l.updates[before:] {
			if !update.Partial {
				t.Errorf("listed anew although the watch could go on: %+v", update)
			}
			removed = append(removed, update.Removed...)
		}
		if !slices.Equal(removed, []types.UID{"a", "b"}) {
			t.Errorf("removed %v", removed)
		}
	})
}

func TestExpiredWatchListsAnewAndKnowsPodsByUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := podapitest.New()
		api.Create(pod("a", "a"))
		api.Create(pod("b", "b"))
		l := follow(t, api)
		old := l.last().Pods
		api.Away(true)
		api.Delete("default", "a", 0)
		api.Create(pod("a2", "a"))
		api.Forget()
		l.took()
		api.Away(false)
		after(time.Minute)
		update := l.last()
		if update.Partial || !slices.Equal(names(update.Pods), []string{"a2", "b"}) {
			t.Fatalf("update %+v", update)
		}
		if told := l.took(); !slices.Contains(told, "gone a") {
			t.Errorf("told %q", told)
		}
		if i := slices.IndexFunc(update.Pods, func(p *corev1.Pod) bool { return p.UID == "b" }); !slices.Contains(old, update.Pods[i]) {
			t.Error("a pod that did not change is another pointer")
		}
	})
}

func TestWatchEndsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := podapitest.New()
		l := follow(t, api)
		after(time.Minute)
		before := l.count()
		api.EndWatches()
		synctest.Wait()
		api.Create(pod("a", "a"))
		synctest.Wait()
		if l.count() != before+1 || !l.last().Partial {
			t.Errorf("updates %d, last %+v", l.count(), l.last())
		}
	})
}

func TestForbiddenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := podapitest.New()
		requests := 0
		api.Refuse(func(*http.Request) (int, string) { requests++; return http.StatusForbidden, "Forbidden" })
		l := follow(t, api)
		after(5 * time.Minute)
		if requests < 10 || requests > 60 {
			t.Errorf("%d requests in 5 minutes", requests)
		}
		api.Refuse(nil)
		after(15 * time.Second)
		if l.count() != 1 {
			t.Errorf("%d updates", l.count())
		}
	})
}

func TestWatchesThatEndAtOnceAreNotOpenedInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := podapitest.New()
		l := follow(t, api)
		after(time.Minute)
		l.took()
		api.EndWatchesAtOnce(true)
		after(5 * time.Minute)
		if syncs := len(l.took()); syncs < 10 || syncs > 60 {
			t.Errorf("%d watches in 5 minutes", syncs)
		}
		api.EndWatchesAtOnce(false)
		after(20 * time.Second)
		api.Create(pod("a", "a"))
		synctest.Wait()
		if !slices.Equal(names(l.last().Pods), []string{"a"}) {
			t.Errorf("update %+v", l.last())
		}
	})
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*apipods.Config){
		"NodeName":    func(c *apipods.Config) { c.NodeName = "" },
		"RetryBase":   func(c *apipods.Config) { c.RetryBase = 0 },
		"RetryMax":    func(c *apipods.Config) { c.RetryMax = 1 },
		"ListTimeout": func(c *apipods.Config) { c.ListTimeout = 0 },
		"WatchTime":   func(c *apipods.Config) { c.WatchTime = 0 },
	} {
		cfg := apipods.DefaultConfig("n")
		change(&cfg)
		if _, err := apipods.New(cfg, podapitest.New().Client(), nil, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := apipods.New(apipods.DefaultConfig("n"), nil, nil, nil); err == nil {
		t.Error("no client: no error")
	}
}

func TestLogsOfClientGoStayWithTheirAgent(t *testing.T) {
	clientlogtest.Separate(t, corev1.SchemeGroupVersion, corev1.AddToScheme, func(ctx context.Context, client rest.Interface, log *slog.Logger) {
		source, err := apipods.New(apipods.DefaultConfig("n"), client, nil, log)
		if err != nil {
			t.Fatal(err)
		}
		_ = source.Run(ctx, make(chan node.SourceUpdate, 8)) // refused
	})
}
