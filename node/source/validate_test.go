package source

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// soundPod is a pod with a bit of everything that Validate looks at.
func soundPod() *corev1.Pod {
	pod := goPod("web", "web:1")
	pod.Namespace, pod.UID = "default", "uid-1"
	pod.Labels = map[string]string{"app.kubernetes.io/name": "web"}
	pod.Annotations = map[string]string{"Example.com/Note": "anything goes here"}
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv/data"}}},
	}
	c := &pod.Spec.Containers[0]
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80, HostPort: 8080}}
	c.Env = []corev1.EnvVar{{Name: "some.name-1", Value: "x"}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data", SubPath: "a/..b"}}
	c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}}
	c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "example.com/gpu": resource.MustParse("1")}
	Default(pod)
	return pod
}

func TestValidate(t *testing.T) {
	if errs := Validate(soundPod()); len(errs) > 0 {
		t.Fatalf("a sound pod is refused: %v", errs)
	}
	type pod = corev1.Pod
	c := func(p *pod) *corev1.Container { return &p.Spec.Containers[0] }
	cases := []struct {
		want string // the path of the one error
		mend func(*pod)
	}{
		{"metadata.name", func(p *pod) { p.Name = "Web" }},
		{"metadata.name", func(p *pod) { p.Name = strings.Repeat("a", 254) }},
		{"metadata.namespace", func(p *pod) { p.Namespace = "a.b" }},
		{"metadata.uid", func(p *pod) { p.UID = "../../etc" }},
		{"metadata.uid", func(p *pod) { p.UID = "a\nb" }},
		{"spec.dnsConfig.nameservers[0]", func(p *pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"x y"}} }},
		{"spec.dnsConfig.searches[0]", func(p *pod) { p.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"a\nnameserver 6.6.6.6"}} }},
		{"spec.dnsConfig.options[0]", func(p *pod) {
			p.Spec.DNSConfig = &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{{Name: "a\nnameserver 6.6.6.6"}}}
		}},
		{"metadata.uid", func(p *pod) { p.UID = "" }},
		{"metadata.labels", func(p *pod) { p.Labels = map[string]string{"a b": ""} }},
		{"metadata.labels[a]", func(p *pod) { p.Labels = map[string]string{"a": "b c"} }},
		{"metadata.annotations", func(p *pod) { p.Annotations = map[string]string{"/a": ""} }},
		{"spec.restartPolicy", func(p *pod) { p.Spec.RestartPolicy = "Sometimes" }},
		{"spec.dnsPolicy", func(p *pod) { p.Spec.DNSPolicy = "x" }},
		{"spec.dnsConfig.nameservers", func(p *pod) { p.Spec.DNSPolicy = corev1.DNSNone }},
		{"spec.activeDeadlineSeconds", func(p *pod) { p.Spec.ActiveDeadlineSeconds = new(int64(0)) }},
		{"spec.hostname", func(p *pod) { p.Spec.Hostname = "a.b" }},
		{"spec.subdomain", func(p *pod) { p.Spec.Subdomain = "A" }},
		{"spec.shareProcessNamespace", func(p *pod) { p.Spec.HostPID, p.Spec.ShareProcessNamespace = true, new(true) }},
		{"spec.os.name", func(p *pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }},
		{"spec.hostAliases[0].ip", func(p *pod) { p.Spec.HostAliases = []corev1.HostAlias{{IP: "x"}} }},
		{"spec.securityContext.fsGroup", func(p *pod) { p.Spec.SecurityContext.FSGroup = new(int64(-1)) }},
		{"spec.ephemeralContainers", func(p *pod) { p.Spec.EphemeralContainers = make([]corev1.EphemeralContainer, 1) }},
		{"spec.containers", func(p *pod) { p.Spec.Containers = nil }},
		{"spec.containers[0].name", func(p *pod) { c(p).Name = "init" }},
		{"spec.containers[0].name", func(p *pod) { c(p).Name = "a.b" }},
		{"spec.containers[0].image", func(p *pod) { c(p).Image = "" }},
		{"spec.containers[0].image", func(p *pod) { c(p).Image = " web" }},
		{"spec.containers[0].imagePullPolicy", func(p *pod) { c(p).ImagePullPolicy = "x" }},
		{"spec.containers[0].terminationMessagePolicy", func(p *pod) { c(p).TerminationMessagePolicy = "x" }},
		{"spec.containers[0].restartPolicy", func(p *pod) { c(p).RestartPolicy = new(corev1.ContainerRestartPolicy("x")) }},
		{"spec.containers[0].restartPolicy", func(p *pod) { c(p).RestartPolicyRules = make([]corev1.ContainerRestartRule, 1) }},
		{"spec.containers[0].ports[0].name", func(p *pod) { c(p).Ports[0].Name = "x_y" }},
		{"spec.containers[0].ports[1].name", func(p *pod) {
			c(p).Ports = append(c(p).Ports, corev1.ContainerPort{Name: "http", ContainerPort: 1, Protocol: "TCP"})
		}},
		{"spec.containers[0].ports[0].containerPort", func(p *pod) { c(p).Ports[0].ContainerPort = 65536 }},
		{"spec.containers[0].ports[0].hostPort", func(p *pod) { c(p).Ports[0].HostPort = -1 }},
		{"spec.containers[0].ports[0].hostPort", func(p *pod) { p.Spec.HostNetwork = true }},
		{"spec.containers[0].ports[0].protocol", func(p *pod) { c(p).Ports[0].Protocol = "x" }},
		{"spec.containers[1].ports[0].hostPort", func(p *pod) {
			twin := *c(p).DeepCopy()
			twin.Name = "twin"
			p.Spec.Containers = append(p.Spec.Containers, twin)
		}},
		{"spec.containers[0].env[0].name", func(p *pod) { c(p).Env[0].Name = "a=b" }},
		{"spec.containers[0].env[0].valueFrom", func(p *pod) { c(p).Env[0].ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}} }},
		{"spec.containers[0].env[0].valueFrom", func(p *pod) { c(p).Env[0] = corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{}} }},
		{"spec.containers[0].volumeMounts[0].name", func(p *pod) { c(p).VolumeMounts[0].Name = "other" }},
		{"spec.containers[0].volumeMounts[0].mountPath", func(p *pod) { c(p).VolumeMounts[0].MountPath = "" }},
		{"spec.containers[0].volumeMounts[0].mountPath", func(p *pod) { c(p).VolumeMounts[0].MountPath = "/a:b" }},
		{"spec.containers[0].volumeMounts[1].mountPath", func(p *pod) { c(p).VolumeMounts = append(c(p).VolumeMounts, c(p).VolumeMounts[0]) }},
		{"spec.containers[0].volumeMounts[0].subPath", func(p *pod) { c(p).VolumeMounts[0].SubPath = "a/../../b" }},
		{"spec.containers[0].volumeMounts[0].subPath", func(p *pod) { c(p).VolumeMounts[0].SubPath = "/etc" }},
		{"spec.containers[0].volumeMounts[0].subPathExpr", func(p *pod) { c(p).VolumeMounts[0].SubPathExpr = "x" }},
		{"spec.containers[0].volumeMounts[0].mountPropagation", func(p *pod) { c(p).VolumeMounts[0].MountPropagation = new(corev1.MountPropagationBidirectional) }},
		{"spec.containers[0].volumeMounts[0].recursiveReadOnly", func(p *pod) { c(p).VolumeMounts[0].RecursiveReadOnly = new(corev1.RecursiveReadOnlyEnabled) }},
		{"spec.containers[0].volumeDevices[0].name", func(p *pod) { c(p).VolumeDevices = []corev1.VolumeDevice{{Name: "data", DevicePath: "/dev/x"}} }},
		{"spec.containers[0].livenessProbe", func(p *pod) { c(p).LivenessProbe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(1)} }},
		{"spec.containers[0].livenessProbe.successThreshold", func(p *pod) { c(p).LivenessProbe.SuccessThreshold = 2 }},
		{"spec.containers[0].livenessProbe.periodSeconds", func(p *pod) { c(p).LivenessProbe.PeriodSeconds = -1 }},
		{"spec.containers[0].livenessProbe.httpGet.port", func(p *pod) { c(p).LivenessProbe.HTTPGet.Port = intstr.FromInt32(0) }},
		{"spec.containers[0].livenessProbe.httpGet.scheme", func(p *pod) { c(p).LivenessProbe.HTTPGet.Scheme = "x" }},
		{"spec.containers[0].livenessProbe.terminationGracePeriodSeconds", func(p *pod) { c(p).LivenessProbe.TerminationGracePeriodSeconds = new(int64(0)) }},
		{"spec.containers[0].readinessProbe.terminationGracePeriodSeconds", func(p *pod) {
			c(p).ReadinessProbe = c(p).LivenessProbe.DeepCopy()
			c(p).ReadinessProbe.TerminationGracePeriodSeconds = new(int64(5))
		}},
		{"spec.initContainers[0].livenessProbe", func(p *pod) { p.Spec.InitContainers[0].LivenessProbe = c(p).LivenessProbe }},
		{"spec.initContainers[0].lifecycle", func(p *pod) { p.Spec.InitContainers[0].Lifecycle = &corev1.Lifecycle{} }},
		{"spec.containers[0].lifecycle.preStop", func(p *pod) { c(p).Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}} }},
		{"spec.containers[0].lifecycle.postStart.exec.command", func(p *pod) {
			c(p).Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}}
		}},
		{"spec.containers[0].resources.requests[cpu]", func(p *pod) { c(p).Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("500m")} }},
		{"spec.containers[0].resources.requests[cpu]", func(p *pod) { c(p).Resources.Requests["cpu"] = resource.MustParse("-1") }},
		{"spec.containers[0].securityContext", func(p *pod) {
			c(p).SecurityContext = &corev1.SecurityContext{Privileged: new(true), AllowPrivilegeEscalation: new(false)}
		}},
		{"spec.volumes[0].name", func(p *pod) { p.Spec.Volumes[0].Name, c(p).VolumeMounts = "A", nil }},
		{"spec.volumes[1].name", func(p *pod) { p.Spec.Volumes = append(p.Spec.Volumes, p.Spec.Volumes[0]) }},
		{"spec.volumes[0]", func(p *pod) { p.Spec.Volumes[0].EmptyDir = &corev1.EmptyDirVolumeSource{} }},
		{"spec.volumes[0].hostPath.path", func(p *pod) { p.Spec.Volumes[0].HostPath.Path = "/a/../b" }},
		{"spec.volumes[0].hostPath.path", func(p *pod) { p.Spec.Volumes[0].HostPath.Path = "" }},
		{"spec.volumes[0].hostPath.type", func(p *pod) { p.Spec.Volumes[0].HostPath.Type = new(corev1.HostPathType("x")) }},
	}
	for _, k := range cases {
		p := soundPod()
		k.mend(p)
		errs := Validate(p)
		if len(errs) != 1 || errs[0].Field != k.want {
			t.Errorf("want one error at %s, got %v", k.want, errs)
		}
	}
}

func TestValidateTakesSidecarsAsContainers(t *testing.T) {
	p := soundPod()
	p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	p.Spec.InitContainers[0].LivenessProbe = p.Spec.Containers[0].LivenessProbe
	if errs := Validate(p); len(errs) > 0 {
		t.Fatal(errs)
	}
	// Its host port is taken for as long as the pod runs.
	p.Spec.InitContainers[0].Ports = p.Spec.Containers[0].Ports
	if errs := Validate(p); len(errs) != 1 || errs[0].Field != "spec.containers[0].ports[0].hostPort" {
		t.Fatal(errs)
	}
}
