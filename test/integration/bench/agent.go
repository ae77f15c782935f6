package bench

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/node/source"
	"nodekit.dev/node/wire"
	"nodekit.dev/resources"
	"nodekit.dev/test/integration/testbed"
)

// agent is a whole agent inside this process, with all that cmd/kubelet does
// to the host. It takes pods from Go and from a folder of manifests. One
// goroutine uses it.
type agent struct {
	manifests string
	pods      *source.Channel
	wanted    []*corev1.Pod
	cfg       wire.Config
	logFile   *os.File
	watches   watches
	*nodefx.Agent
}

// startAgent starts an agent on a runtime of the bed and returns when it is ready.
func startAgent(ctx context.Context, bed *testbed.Bed, socket string) (*agent, error) {
	a := &agent{manifests: filepath.Join(bed.Dir, "manifests")}
	a.watches.byName = map[string]*watch{}
	if err := os.MkdirAll(a.manifests, 0o755); err != nil {
		return nil, err
	}
	var err error
	a.logFile, err = os.OpenFile(filepath.Join(bed.Dir, "bench-agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	a.cfg = agentConfig(bed, socket, slog.New(slog.NewTextHandler(a.logFile, nil)))
	if err := a.wire(); err != nil {
		return nil, errors.Join(err, a.logFile.Close())
	}
	if err := a.Start(ctx); err != nil {
		return nil, errors.Join(err, a.stop(ctx))
	}
	select {
	case <-a.Ready():
		return a, nil
	case err := <-a.Done():
		return nil, errors.Join(errors.New("the agent ended by itself"), err, a.stop(ctx))
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), a.stop(ctx))
	}
}

func agentConfig(bed *testbed.Bed, socket string, log *slog.Logger) wire.Config {
	cfg := wire.Default()
	cfg.NodeName, cfg.NodeIPs = testbed.NodeName, []string{bed.NodeIP.String()}
	cfg.RootDir, cfg.PodLogsDir = filepath.Join(bed.Dir, "bench-agent"), bed.PodLogs
	cfg.Host = wire.Host{LogLinksDir: bed.LogLinks, Hosts: true, PodCgroups: true, ResolvConf: "/etc/resolv.conf"}
	cfg.CRI.Endpoint = "unix://" + socket
	cfg.Spec.Cgroups = cgroupNames(bed)
	cfg.Log = log
	return cfg
}

func cgroupNames(bed *testbed.Bed) resources.CgroupNames {
	return resources.CgroupNames{Driver: resources.Cgroupfs, Root: bed.CgroupRoot}
}

// wire makes the agent.
func (a *agent) wire() error {
	var err error
	common := source.Config{NodeName: a.cfg.NodeName, Log: a.cfg.Log}
	if a.pods, err = source.NewChannel("bench", common); err != nil {
		return err
	}
	if err := a.pods.Set(nil); err != nil {
		return err
	}
	folder, err := source.NewDir(source.DirConfig{Config: common, Path: a.manifests})
	if err != nil {
		return err
	}
	a.Agent, err = nodefx.New(
		nodefx.Config(a.cfg),
		nodefx.AddSource("bench", a.pods),
		nodefx.AddSource("file", folder),
		nodefx.AddStatusSink(&a.watches),
		nodefx.Wrap("not-the-bare-pods", nil, withoutBarePods),
	)
	return err
}

// stop ends the agent; pods run on.
func (a *agent) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(a.Stop(ctx), a.logFile.Close())
}

// newPod is a pod of one container that ends at once on SIGTERM.
func newPod(name, uid string) *corev1.Pod {
	grace := int64(10)
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main", Image: testbed.PauseImage}},
		},
	}
}

// start hands pods over in one step and returns how long each of them took
// until it was Ready, in the order of the pods.
func (a *agent) start(ctx context.Context, pods ...*corev1.Pod) ([]time.Duration, error) {
	watches := make([]*watch, len(pods))
	for i, p := range pods {
		watches[i] = a.watches.watch(p.Name)
	}
	a.wanted = append(a.wanted, pods...)
	began := time.Now()
	if err := a.pods.Set(a.wanted); err != nil {
		return nil, err
	}
	took := make([]time.Duration, len(pods))
	for i, w := range watches {
		at, err := wait(ctx, "ready", pods[i].Name, w.ready)
		if err != nil {
			return nil, err
		}
		took[i] = at.Sub(began)
	}
	return took, nil
}

// stopPods takes pods away in one step and returns how long each of them took
// until nothing was left of it.
func (a *agent) stopPods(ctx context.Context, pods ...*corev1.Pod) ([]time.Duration, error) {
	a.wanted = slices.DeleteFunc(a.wanted, func(p *corev1.Pod) bool { return slices.Contains(pods, p) })
	began := time.Now()
	if err := a.pods.Set(a.wanted); err != nil {
		return nil, err
	}
	took := make([]time.Duration, len(pods))
	for i, p := range pods {
		at, err := wait(ctx, "gone", p.Name, a.watches.existing(p.Name).gone)
		if err != nil {
			return nil, err
		}
		took[i] = at.Sub(began)
	}
	return took, nil
}

func wait(ctx context.Context, what, name string, at <-chan time.Time) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("pod "+name+" was not "+what+" in time"))
	defer cancel()
	select {
	case t := <-at:
		return t, nil
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
}

// watches tell when pods became ready and when they were gone. It is a
// node.StatusSink.
type watches struct {
	mu     sync.Mutex
	byName map[string]*watch
}

// watch holds at most one time each.
type watch struct{ ready, gone chan time.Time }

func (w *watches) watch(name string) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := &watch{ready: make(chan time.Time, 1), gone: make(chan time.Time, 1)}
	w.byName[name] = one
	return one
}

func (w *watches) existing(name string) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byName[name]
}

// PodStatus notes the first Ready, and the end.
func (w *watches) PodStatus(u node.StatusUpdate) {
	if u.Phase == lifecycle.Finished {
		w.note(u.Name, func(one *watch) chan time.Time { return one.gone })
	}
	for _, c := range u.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			w.note(u.Name, func(one *watch) chan time.Time { return one.ready })
		}
	}
}

func (w *watches) note(name string, which func(*watch) chan time.Time) {
	now := time.Now()
	one := w.existing(strings.TrimSuffix(name, "-"+testbed.NodeName))
	if one == nil {
		return
	}
	select {
	case which(one) <- now:
	default: // it has its time
	}
}
