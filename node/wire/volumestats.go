package wire

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/stats"
)

// VolumeStats are what the volumes of pods hold, as last measured. The default is
// volume/stats, over the default Mounter; beside another one, nobody measures. No
// method blocks; what results point to is shared: read only.
type VolumeStats interface {
	// Snapshot is for one pod; empty: nothing was measured yet.
	Snapshot(uid string) []stats.Stats
	// All is for every pod.
	All() []stats.Stats
}

// MeasureVolumes makes the default VolumeStats, with what has to run, for the
// volumes that the contents' manager has. Readers are the vendor's, by plugin;
// they come before those of the configuration.
func MeasureVolumes(cfg Config, contents *Contents, readers []node.Ordered[stats.Reader]) (VolumeStats, []Part, error) {
	if contents.manager.Load() == nil {
		return nothingMeasured{}, nil, nil
	}
	c := cfg.VolumeStats
	c.Readers = map[string]stats.Reader{}
	if drivers := contents.csi.plugin.Load(); drivers != nil {
		c.Readers[csi.Name] = CSIReader(drivers)
	}
	for plugin, r := range cfg.VolumeStats.Readers {
		c.Readers[plugin] = r
	}
	for _, r := range readers {
		c.Readers[r.Name] = r.Value
	}
	c.Observer = contents.telling(c.Observer, cfg.SizeLimits)
	m, err := stats.New(c, contents.manager.Load(), cfg.Log.With("part", "volume-stats"))
	if err != nil || c.Off() {
		return m, nil, err
	}
	contents.stats.Store(m)
	return m, []Part{{"volume-stats", m.Run}}, nil
}

// nothingMeasured is for agents whose Mounter is a vendor's.
type nothingMeasured struct{}

func (nothingMeasured) Snapshot(string) []stats.Stats { return nil }
func (nothingMeasured) All() []stats.Stats            { return nil }

// Census counts the volumes of the default Mounter; of another one there are none.
func (c *Contents) Census() volume.Census {
	if m := c.manager.Load(); m != nil {
		return m.Census()
	}
	return volume.Census{}
}

// measure tells of a pod, and of its end, those who measure.
func (c *Contents) measure(u node.StatusUpdate) {
	m := c.stats.Load()
	switch {
	case m == nil:
	case u.Phase >= lifecycle.Cleaning:
		m.Forget(u.UID)
	case u.Pod != nil:
		m.Follow(u.Pod)
	}
}

// telling is the observer that also tells users of what drivers say.
func (c *Contents) telling(o stats.Observer, limits bool) stats.Observer {
	condition, health, figures := o.ConditionChanged, o.HealthChanged, o.Figures
	o.Figures = func(pod *corev1.Pod, s stats.Stats) {
		if figures != nil {
			figures(pod, s)
		}
		if limits {
			c.limit(pod, s)
		}
	}
	o.ConditionChanged = func(pod *corev1.Pod, s stats.Stats) {
		if condition != nil {
			condition(pod, s)
		}
		if n := c.node.Load(); n != nil && s.Condition != nil && s.Condition.Abnormal {
			n.Tell(s.UID, lifecycle.Event{
				Type: lifecycle.EventWarning, Reason: "VolumeConditionAbnormal",
				Message: fmt.Sprintf("Volume %s: %s", s.Volume, s.Condition.Message),
			})
		}
	}
	o.HealthChanged = func(pod *corev1.Pod, s stats.Stats) {
		if health != nil {
			health(pod, s)
		}
		if n := c.node.Load(); n != nil {
			n.Retell(s.UID)
		}
	}
	return o
}

// overGrace is how long the containers of a pod over its limit have to end.
const overGrace = time.Second

// limit ends the pod if its volume holds more than it may.
func (c *Contents) limit(pod *corev1.Pod, s stats.Stats) {
	n := c.node.Load()
	if n == nil || s.Used == nil {
		return
	}
	message, over := volume.OverLimit(pod, s.Volume, *s.Used)
	if !over {
		return
	}
	view, known := n.Pod(s.UID)
	if !known || view.Phase >= lifecycle.Stopping || view.Static || critical(pod) {
		return
	}
	n.Tell(s.UID, lifecycle.Event{Type: lifecycle.EventWarning, Reason: "Evicted", Message: message})
	n.StopPod(s.UID, lifecycle.Stop{Reason: lifecycle.StopEvicted, StatusReason: "Evicted", Message: message, At: time.Now(), Grace: overGrace})
}

// systemCritical is the lowest priority of the pods that a node never evicts, as
// with the stock kubelet.
const systemCritical = 2_000_000_000

func critical(pod *corev1.Pod) bool {
	return pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}

// VolumeHealth adds to statuses what drivers report of the pod's volumes; none
// where nobody asks them.
func VolumeHealth(cfg Config, from VolumeStats) []node.Ordered[node.StatusMutator] {
	if !cfg.VolumeStats.Health {
		return nil
	}
	return []node.Ordered[node.StatusMutator]{{Name: "volume-health", Value: node.StatusMutatorFunc(func(u node.StatusUpdate) corev1.PodStatus {
		status := u.Status
		status.VolumeHealth = healthOf(from.Snapshot(u.UID))
		return status
	})}}
}

// mostConditions is how many of them the API takes.
const mostConditions = 16

func healthOf(volumes []stats.Stats) (out []corev1.PodVolumeHealth) {
	for _, v := range volumes {
		if v.HealthKnown {
			out = append(out, corev1.PodVolumeHealth{
				Name: v.Volume, LastTransitionTime: metav1.NewTime(v.HealthSince),
				HealthConditions: slices.Clone(v.Health[:min(len(v.Health), mostConditions)]),
			})
		}
	}
	return out
}

// WithQuotas gives emptyDir volumes a project quota each, where the configuration
// asks for it and their file system has them.
func WithQuotas(cfg Config, all []volume.Plugin) []volume.Plugin {
	if !cfg.VolumeStats.Quotas {
		return all
	}
	projects := &stats.Projects{}
	for i, p := range all {
		if p.Name() == "kubernetes.io/empty-dir" {
			all[i] = projects.Around(p, cfg.Log.With("part", "volume"))
		}
	}
	return all
}
