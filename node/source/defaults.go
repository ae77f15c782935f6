package source

import (
	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Default fills in what the API server fills in for a pod that says nothing.
// It is idempotent.
func Default(pod *corev1.Pod) {
	spec := &pod.Spec
	orDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	orDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	orDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	orPointer(&spec.SecurityContext, corev1.PodSecurityContext{})
	orPointer(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	orPointer(&spec.TerminationGracePeriodSeconds, int64(corev1.DefaultTerminationGracePeriodSeconds))
	if *spec.TerminationGracePeriodSeconds < 0 {
		spec.TerminationGracePeriodSeconds = new(int64(1))
	}
	if spec.DeprecatedServiceAccount == "" {
		spec.DeprecatedServiceAccount = spec.ServiceAccountName
	} else if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	defaultPriority(spec)
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			defaultContainer(&list[i], spec.HostNetwork)
		}
	}
	defaultPodResources(spec)
}

// defaultPriority resolves the two classes that every cluster has.
func defaultPriority(spec *corev1.PodSpec) {
	if spec.Priority != nil {
		return
	}
	switch spec.PriorityClassName {
	case "system-node-critical":
		spec.Priority = new(int32(2_000_001_000))
	case "system-cluster-critical":
		spec.Priority = new(int32(2_000_000_000))
	}
}

func defaultContainer(c *corev1.Container, hostNetwork bool) {
	orDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	orDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	orDefault(&c.ImagePullPolicy, pullPolicyOf(c.Image))
	for i := range c.Ports {
		orDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			orDefault(&c.Ports[i].HostPort, c.Ports[i].ContainerPort)
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				orPointer(&from.FileKeyRef.Optional, false)
			}
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	requestsFromLimits(&c.Resources)
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(p)
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				defaultHTTPGet(h.HTTPGet)
			}
		}
	}
}

// pullPolicyOf is Always for the tag latest, given or implied.
func pullPolicyOf(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		// The pull will say what is wrong with the name.
		return corev1.PullIfNotPresent
	}
	tagged, isTagged := reference.TagNameOnly(named).(reference.Tagged)
	if isTagged && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	orDefault(&p.TimeoutSeconds, 1)
	orDefault(&p.PeriodSeconds, 10)
	orDefault(&p.SuccessThreshold, 1)
	orDefault(&p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		orPointer(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(h *corev1.HTTPGetAction) {
	if h != nil {
		orDefault(&h.Path, "/")
		orDefault(&h.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultFieldRef(f *corev1.ObjectFieldSelector) {
	if f != nil {
		orDefault(&f.APIVersion, "v1")
	}
}

// roundUp rounds amounts that are finer than a thousandth up to one.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

// requestsFromLimits requests what is limited where no request is given.
func requestsFromLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, given := r.Requests[name]; given {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

// defaultPodResources requests for the pod as a whole what its containers
// request together, else what it is limited to.
func defaultPodResources(spec *corev1.PodSpec) {
	if spec.Resources == nil || len(spec.Resources.Limits) == 0 {
		return
	}
	for name := range spec.Resources.Limits {
		if _, given := spec.Resources.Requests[name]; given {
			continue
		}
		var sum resource.Quantity
		for _, c := range spec.Containers {
			sum.Add(c.Resources.Requests[name])
		}
		if sum.IsZero() {
			continue
		}
		if spec.Resources.Requests == nil {
			spec.Resources.Requests = corev1.ResourceList{}
		}
		spec.Resources.Requests[name] = sum
	}
	requestsFromLimits(spec.Resources)
}

// orDefault sets what has its zero value.
func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// orPointer sets what is nil.
func orPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
