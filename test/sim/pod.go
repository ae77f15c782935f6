package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The exit codes that rules of random pods tell apart.
const (
	exitRestart    = 42
	exitRestartAll = 3
)

// randomPod is any pod that the machine may be asked to run.
func randomPod(r *rand.Rand, uid string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.UID, pod.Namespace, pod.Name, pod.Generation = types.UID(uid), "ns", "p", 1
	pod.Spec.RestartPolicy = pick(r, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	pod.Spec.HostNetwork = r.IntN(8) == 0
	grace := pick(r, int64(0), 1, 5, 30, 120)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	if r.IntN(10) == 0 {
		deadline := int64(20 + r.IntN(2000))
		pod.Spec.ActiveDeadlineSeconds = &deadline
	}
	for i := range r.IntN(3) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i)})
	}
	rules := r.IntN(3) == 0
	for i := range r.IntN(4) {
		c := randomContainer(r, pod, fmt.Sprint("i", i))
		if r.IntN(2) == 0 {
			always := corev1.ContainerRestartPolicyAlways
			c.Name, c.RestartPolicy = fmt.Sprint("s", i), &always
			addProbes(r, &c)
		} else {
			c.Lifecycle = nil
			if rules {
				addRules(r, &c)
			}
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i := range 1 + r.IntN(3) {
		c := randomContainer(r, pod, fmt.Sprint("m", i))
		addProbes(r, &c)
		if rules {
			addRules(r, &c)
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

func randomContainer(r *rand.Rand, pod *corev1.Pod, name string) corev1.Container {
	c := corev1.Container{Name: name, Image: "img/" + name, ImagePullPolicy: corev1.PullIfNotPresent}
	if r.IntN(4) == 0 {
		c.ImagePullPolicy = corev1.PullAlways
	}
	for _, v := range pod.Spec.Volumes {
		if r.IntN(2) == 0 {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
		}
	}
	hooks := &corev1.Lifecycle{}
	if r.IntN(4) == 0 {
		hooks.PostStart = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}
	}
	if r.IntN(3) == 0 {
		hooks.PreStop = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}
	}
	c.Lifecycle = hooks
	return c
}

func addProbes(r *rand.Rand, c *corev1.Container) {
	if r.IntN(4) == 0 {
		c.StartupProbe = &corev1.Probe{}
	}
	if r.IntN(4) == 0 {
		c.ReadinessProbe = &corev1.Probe{}
	}
	if r.IntN(4) == 0 {
		c.LivenessProbe = &corev1.Probe{}
	}
}

// addRules gives a container a restart policy and rules of its own.
func addRules(r *rand.Rand, c *corev1.Container) {
	if r.IntN(2) == 0 {
		return
	}
	policy := pick(r, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)
	c.RestartPolicy = &policy
	add := func(action corev1.ContainerRestartRuleAction, code int32) {
		c.RestartPolicyRules = append(c.RestartPolicyRules, corev1.ContainerRestartRule{
			Action: action,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
				Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{code},
			},
		})
	}
	if r.IntN(2) == 0 {
		add(corev1.ContainerRestartRuleActionRestart, exitRestart)
	}
	if r.IntN(2) == 0 {
		add(corev1.ContainerRestartRuleActionRestartAllContainers, exitRestartAll)
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// between draws a duration so that each order of magnitude is as likely.
func between(r *rand.Rand, lo, hi time.Duration) time.Duration {
	return time.Duration(float64(lo) * math.Pow(float64(hi)/float64(lo), r.Float64()))
}

// What a container is to its pod, told apart without asking the machine.
type role string

const (
	initC      role = "init"
	sidecarC   role = "sidecar"
	mainC      role = "main"
	ephemeralC role = "ephemeral"
)

// specOf finds a container in a pod, and its place among those of its list.
func specOf(pod *corev1.Pod, name string) (spec *corev1.Container, what role, place int) {
	if pod == nil {
		return nil, "", 0
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name != name {
			continue
		}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			return c, sidecarC, i
		}
		return c, initC, i
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i], mainC, i
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon); c.Name == name {
			return &c, ephemeralC, i
		}
	}
	return nil, "", 0
}

// ruleFor is the action of the first rule that names the exit code.
func ruleFor(c *corev1.Container, exit int32) corev1.ContainerRestartRuleAction {
	for _, rule := range c.RestartPolicyRules {
		for _, value := range rule.ExitCodes.Values {
			if value == exit {
				return rule.Action
			}
		}
	}
	return ""
}

// mayRestart is what the API's documentation says of a container that ended by
// itself.
func mayRestart(pod *corev1.Pod, c *corev1.Container, what role, exit int32) bool {
	if what == sidecarC || ruleFor(c, exit) != "" {
		return true
	}
	if what == ephemeralC || (what == initC && exit == 0) {
		return false
	}
	policy := pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	return policy == corev1.RestartPolicyAlways || (policy == corev1.RestartPolicyOnFailure && exit != 0)
}

// endless says that the container is to run for ever.
func endless(pod *corev1.Pod, c *corev1.Container, what role) bool {
	return what == sidecarC || what == mainC && mayRestart(pod, c, what, 0)
}

// usedVolumes are the volumes of the pod that this container mounts.
func usedVolumes(pod *corev1.Pod, c *corev1.Container) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		for _, m := range c.VolumeMounts {
			if m.Name == v.Name {
				names = append(names, v.Name)
			}
		}
	}
	return names
}
