package source

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containerCheck checks one container of a pod.
type containerCheck struct {
	c           *corev1.Container
	path        *field.Path
	volumes     map[string]*corev1.Volume
	init        bool
	hostNetwork bool
}

func (k containerCheck) all() field.ErrorList {
	c := k.c
	errs := named(k.path.Child("name"), c.Name, validation.IsDNS1123Label)
	if c.Image == "" {
		errs = append(errs, field.Required(k.path.Child("image"), ""))
	} else if strings.TrimSpace(c.Image) != c.Image {
		errs = append(errs, field.Invalid(k.path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, oneOf(k.path.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, oneOf(k.path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, k.restartPolicy()...)
	errs = append(errs, k.ports()...)
	errs = append(errs, k.env()...)
	errs = append(errs, k.mounts()...)
	errs = append(errs, k.handlers()...)
	errs = append(errs, validateResources(&c.Resources, k.path.Child("resources"))...)
	if sc := c.SecurityContext; sc != nil {
		errs = append(errs, ids(k.path.Child("securityContext"), map[string]*int64{"runAsUser": sc.RunAsUser, "runAsGroup": sc.RunAsGroup})...)
		if sc.Privileged != nil && *sc.Privileged && sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation {
			errs = append(errs, field.Invalid(k.path.Child("securityContext"), "", "a privileged container can not have allowPrivilegeEscalation false"))
		}
	}
	return errs
}

func (k containerCheck) restartPolicy() field.ErrorList {
	var errs field.ErrorList
	at := k.path.Child("restartPolicy")
	if p := k.c.RestartPolicy; p != nil {
		errs = oneOf(at, *p, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever)
	} else if len(k.c.RestartPolicyRules) > 0 {
		errs = append(errs, field.Required(at, "restartPolicyRules need it"))
	}
	return errs
}

func (k containerCheck) ports() field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, port := range k.c.Ports {
		at := k.path.Child("ports").Index(i)
		if port.Name != "" {
			errs = append(errs, named(at.Child("name"), port.Name, validation.IsValidPortName)...)
			if names[port.Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), port.Name))
			}
			names[port.Name] = true
		}
		errs = append(errs, portNumber(at.Child("containerPort"), port.ContainerPort)...)
		if port.HostPort != 0 {
			errs = append(errs, portNumber(at.Child("hostPort"), port.HostPort)...)
			if k.hostNetwork && port.HostPort != port.ContainerPort {
				errs = append(errs, field.Invalid(at.Child("hostPort"), port.HostPort, "must be the containerPort when the pod is on the host's network"))
			}
		}
		errs = append(errs, oneOf(at.Child("protocol"), port.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
	}
	return errs
}

func portNumber(at *field.Path, port int32) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsValidPortNum(int(port)) {
		errs = append(errs, field.Invalid(at, port, problem))
	}
	return errs
}

func (k containerCheck) env() field.ErrorList {
	var errs field.ErrorList
	for i, env := range k.c.Env {
		at := k.path.Child("env").Index(i)
		errs = append(errs, named(at.Child("name"), env.Name, validation.IsRelaxedEnvVarName)...)
		from := env.ValueFrom
		if from == nil {
			continue
		}
		if env.Value != "" {
			errs = append(errs, field.Invalid(at.Child("valueFrom"), "", "can not be set together with value"))
		}
		if n := count(from.FieldRef != nil, from.ResourceFieldRef != nil, from.ConfigMapKeyRef != nil, from.SecretKeyRef != nil, from.FileKeyRef != nil); n != 1 {
			errs = append(errs, field.Invalid(at.Child("valueFrom"), "", fmt.Sprintf("has %d sources, must have one", n)))
		}
	}
	return errs
}

func count(set ...bool) int {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}

func (k containerCheck) mounts() field.ErrorList {
	var errs field.ErrorList
	paths := map[string]bool{}
	for i, m := range k.c.VolumeMounts {
		at := k.path.Child("volumeMounts").Index(i)
		if k.volumes[m.Name] == nil {
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		switch {
		case m.MountPath == "":
			errs = append(errs, field.Required(at.Child("mountPath"), ""))
		case strings.Contains(m.MountPath, ":"):
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must not contain ':'"))
		case paths[m.MountPath]:
			errs = append(errs, field.Duplicate(at.Child("mountPath"), m.MountPath))
		}
		paths[m.MountPath] = true
		errs = append(errs, k.mount(m, at)...)
	}
	for i, d := range k.c.VolumeDevices {
		at := k.path.Child("volumeDevices").Index(i)
		v := k.volumes[d.Name]
		switch {
		case v == nil:
			errs = append(errs, field.NotFound(at.Child("name"), d.Name))
		case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "only a persistent volume claim can be a block device"))
		}
		if d.DevicePath == "" || paths[d.DevicePath] {
			errs = append(errs, field.Invalid(at.Child("devicePath"), d.DevicePath, "must be set and unique"))
		}
		paths[d.DevicePath] = true
	}
	return errs
}

func (k containerCheck) mount(m corev1.VolumeMount, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.SubPath != "" && m.SubPathExpr != "" {
		errs = append(errs, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr, "can not be set together with subPath"))
	}
	errs = append(errs, beneath(at.Child("subPath"), m.SubPath)...)
	errs = append(errs, beneath(at.Child("subPathExpr"), m.SubPathExpr)...)
	if p := m.MountPropagation; p != nil {
		errs = append(errs, oneOf(at.Child("mountPropagation"), *p,
			corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional)...)
		sc := k.c.SecurityContext
		if *p == corev1.MountPropagationBidirectional && (sc == nil || sc.Privileged == nil || !*sc.Privileged) {
			errs = append(errs, field.Forbidden(at.Child("mountPropagation"), "Bidirectional is only for privileged containers"))
		}
	}
	if r := m.RecursiveReadOnly; r != nil {
		errs = append(errs, oneOf(at.Child("recursiveReadOnly"), *r,
			corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled)...)
		if *r != corev1.RecursiveReadOnlyDisabled {
			if !m.ReadOnly {
				errs = append(errs, field.Forbidden(at.Child("recursiveReadOnly"), "needs readOnly"))
			}
			if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
				errs = append(errs, field.Forbidden(at.Child("recursiveReadOnly"), "needs mountPropagation None"))
			}
		}
	}
	return errs
}

// beneath refuses a path that leaves its volume.
func beneath(at *field.Path, p string) field.ErrorList {
	if path.IsAbs(p) {
		return field.ErrorList{field.Invalid(at, p, "must be relative")}
	}
	return noDotDot(at, p)
}

func noDotDot(at *field.Path, p string) field.ErrorList {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return field.ErrorList{field.Invalid(at, p, "must not contain '..'")}
		}
	}
	return nil
}

func (k containerCheck) handlers() field.ErrorList {
	var errs field.ErrorList
	c := k.c
	probes := map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe}
	for _, name := range sortedKeys(probes) {
		p := probes[name]
		if p == nil {
			continue
		}
		if k.init && !sidecar(c) {
			errs = append(errs, field.Forbidden(k.path.Child(name), "not for init containers that end"))
			continue
		}
		errs = append(errs, validateProbe(p, k.path.Child(name), name != "readinessProbe")...)
	}
	if c.Lifecycle == nil {
		return errs
	}
	if k.init && !sidecar(c) {
		return append(errs, field.Forbidden(k.path.Child("lifecycle"), "not for init containers that end"))
	}
	hooks := map[string]*corev1.LifecycleHandler{"postStart": c.Lifecycle.PostStart, "preStop": c.Lifecycle.PreStop}
	for _, name := range sortedKeys(hooks) {
		h := hooks[name]
		if h == nil {
			continue
		}
		at := k.path.Child("lifecycle", name)
		if n := count(h.Exec != nil, h.HTTPGet != nil, h.TCPSocket != nil, h.Sleep != nil); n != 1 {
			errs = append(errs, field.Invalid(at, "", fmt.Sprintf("has %d handlers, must have one", n)))
		}
		if h.Sleep != nil && h.Sleep.Seconds < 0 {
			errs = append(errs, field.Invalid(at.Child("sleep", "seconds"), h.Sleep.Seconds, "must not be negative"))
		}
		errs = append(errs, validateActions(h.Exec, h.HTTPGet, h.TCPSocket, at)...)
	}
	return errs
}

// validateProbe checks a probe; one that restarts needs one success only.
func validateProbe(p *corev1.Probe, at *field.Path, restarts bool) field.ErrorList {
	var errs field.ErrorList
	if n := count(p.Exec != nil, p.HTTPGet != nil, p.TCPSocket != nil, p.GRPC != nil); n != 1 {
		errs = append(errs, field.Invalid(at, "", fmt.Sprintf("has %d handlers, must have one", n)))
	}
	for _, limit := range []struct {
		name    string
		value   int32
		atLeast int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds, 0},
		{"timeoutSeconds", p.TimeoutSeconds, 1},
		{"periodSeconds", p.PeriodSeconds, 1},
		{"successThreshold", p.SuccessThreshold, 1},
		{"failureThreshold", p.FailureThreshold, 1},
	} {
		if limit.value < limit.atLeast {
			errs = append(errs, field.Invalid(at.Child(limit.name), limit.value, fmt.Sprintf("must be at least %d", limit.atLeast)))
		}
	}
	if restarts && p.SuccessThreshold != 1 {
		errs = append(errs, field.Invalid(at.Child("successThreshold"), p.SuccessThreshold, "must be 1"))
	}
	if grace := p.TerminationGracePeriodSeconds; grace != nil && (!restarts || *grace < 1) {
		errs = append(errs, field.Invalid(at.Child("terminationGracePeriodSeconds"), *grace, "must be at least 1, and only for probes that restart"))
	}
	if p.GRPC != nil {
		errs = append(errs, portNumber(at.Child("grpc", "port"), p.GRPC.Port)...)
	}
	return append(errs, validateActions(p.Exec, p.HTTPGet, p.TCPSocket, at)...)
}

func validateActions(exec *corev1.ExecAction, get *corev1.HTTPGetAction, tcp *corev1.TCPSocketAction, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if exec != nil && len(exec.Command) == 0 {
		errs = append(errs, field.Required(at.Child("exec", "command"), ""))
	}
	if get != nil {
		errs = append(errs, portOrName(at.Child("httpGet", "port"), get.Port)...)
		errs = append(errs, oneOf(at.Child("httpGet", "scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
		for i, h := range get.HTTPHeaders {
			errs = append(errs, named(at.Child("httpGet", "httpHeaders").Index(i).Child("name"), h.Name, validation.IsHTTPHeaderName)...)
		}
	}
	if tcp != nil {
		errs = append(errs, portOrName(at.Child("tcpSocket", "port"), tcp.Port)...)
	}
	return errs
}

func portOrName(at *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.Int {
		return portNumber(at, port.IntVal)
	}
	return named(at, port.StrVal, validation.IsValidPortName)
}

func validateResources(r *corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	lists := map[string]corev1.ResourceList{"limits": r.Limits, "requests": r.Requests}
	for _, list := range sortedKeys(lists) {
		for _, name := range sortedKeys(lists[list]) {
			q := lists[list][name]
			where := at.Child(list).Key(string(name))
			errs = append(errs, named(where, string(name), validation.IsQualifiedName)...)
			if q.Sign() < 0 {
				errs = append(errs, field.Invalid(where, q.String(), "must not be negative"))
			}
			if limit, limited := r.Limits[name]; list == "requests" && limited && q.Cmp(limit) > 0 {
				errs = append(errs, field.Invalid(where, q.String(), "must be at most the limit of "+limit.String()))
			}
		}
	}
	return errs
}
