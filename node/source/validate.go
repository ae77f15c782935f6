package source

import (
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"nodekit.dev/node/podactor"
)

// Validate says what the API server would refuse in a pod, as far as it
// matters on a node. It expects Default's work to be done.
func Validate(pod *corev1.Pod) field.ErrorList {
	meta, spec := field.NewPath("metadata"), field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, named(meta.Child("name"), pod.Name, validation.IsDNS1123Subdomain)...)
	errs = append(errs, named(meta.Child("namespace"), pod.Namespace, validation.IsDNS1123Label)...)
	if err := podactor.CheckUID(string(pod.UID)); err != nil {
		errs = append(errs, field.Invalid(meta.Child("uid"), string(pod.UID), err.Error()))
	} else if len(pod.UID) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.TooLong(meta.Child("uid"), "", validation.DNS1123SubdomainMaxLength))
	}
	for _, key := range sortedKeys(pod.Labels) {
		errs = append(errs, named(meta.Child("labels"), key, validation.IsQualifiedName)...)
		errs = append(errs, named(meta.Child("labels").Key(key), pod.Labels[key], validation.IsValidLabelValue)...)
	}
	for _, key := range sortedKeys(pod.Annotations) {
		errs = append(errs, named(meta.Child("annotations"), strings.ToLower(key), validation.IsQualifiedName)...)
	}
	errs = append(errs, validateSpec(&pod.Spec, spec)...)
	volumes, volumeErrs := validateVolumes(pod.Spec.Volumes, spec.Child("volumes"))
	errs = append(errs, volumeErrs...)
	return append(errs, validateContainers(&pod.Spec, volumes, spec)...)
}

// named applies one of the API's rules for names.
func named(path *field.Path, value string, rule func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range rule(value) {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}

// oneOf refuses a value that is not among those allowed.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func validateSpec(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	errs = append(errs, oneOf(path.Child("dnsPolicy"), spec.DNSPolicy,
		corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)...)
	if spec.DNSPolicy == corev1.DNSNone && (spec.DNSConfig == nil || len(spec.DNSConfig.Nameservers) == 0) {
		errs = append(errs, field.Required(path.Child("dnsConfig", "nameservers"), "dnsPolicy None needs at least one"))
	}
	errs = append(errs, validateDNS(spec.DNSConfig, path.Child("dnsConfig"))...)
	if seconds := spec.ActiveDeadlineSeconds; seconds != nil && *seconds < 1 {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *seconds, "must be at least 1"))
	}
	if spec.Hostname != "" {
		errs = append(errs, named(path.Child("hostname"), spec.Hostname, validation.IsDNS1123Label)...)
	}
	if spec.Subdomain != "" {
		errs = append(errs, named(path.Child("subdomain"), spec.Subdomain, validation.IsDNS1123Label)...)
	}
	if spec.HostPID && spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), true, "can not be set together with hostPID"))
	}
	if spec.OS != nil && spec.OS.Name != corev1.Linux {
		errs = append(errs, field.NotSupported(path.Child("os", "name"), spec.OS.Name, []corev1.OSName{corev1.Linux}))
	}
	for i, alias := range spec.HostAliases {
		if net.ParseIP(alias.IP) == nil {
			errs = append(errs, field.Invalid(path.Child("hostAliases").Index(i).Child("ip"), alias.IP, "must be an IP address"))
		}
		for j, name := range alias.Hostnames {
			errs = append(errs, named(path.Child("hostAliases").Index(i).Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain)...)
		}
	}
	if spec.SecurityContext != nil {
		errs = append(errs, ids(path.Child("securityContext"), map[string]*int64{
			"runAsUser": spec.SecurityContext.RunAsUser, "runAsGroup": spec.SecurityContext.RunAsGroup, "fsGroup": spec.SecurityContext.FSGroup,
		})...)
	}
	if spec.Resources != nil {
		errs = append(errs, validateResources(spec.Resources, path.Child("resources"))...)
	}
	if len(spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "can only be added to a pod that runs"))
	}
	return errs
}

// ids refuses user and group numbers that the kernel does not have.
func ids(path *field.Path, values map[string]*int64) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(values) {
		if v := values[name]; v != nil && (*v < 0 || *v > 1<<31-1) {
			errs = append(errs, field.Invalid(path.Child(name), *v, fmt.Sprintf("must be between 0 and %d", 1<<31-1)))
		}
	}
	return errs
}

// validateContainers checks all containers, and what must not occur twice
// among them.
func validateContainers(spec *corev1.PodSpec, volumes map[string]*corev1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), "a pod has at least one"))
	}
	names, hostPorts := map[string]bool{}, map[string]bool{}
	check := func(list []corev1.Container, name string, init bool) {
		for i := range list {
			at := path.Child(name).Index(i)
			c := containerCheck{c: &list[i], path: at, volumes: volumes, init: init, hostNetwork: spec.HostNetwork}
			errs = append(errs, c.all()...)
			if names[list[i].Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), list[i].Name))
			}
			names[list[i].Name] = true
			for j, port := range list[i].Ports {
				if port.HostPort == 0 || init && !sidecar(&list[i]) {
					continue
				}
				key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
				if hostPorts[key] {
					errs = append(errs, field.Duplicate(at.Child("ports").Index(j).Child("hostPort"), key))
				}
				hostPorts[key] = true
			}
		}
	}
	check(spec.InitContainers, "initContainers", true)
	check(spec.Containers, "containers", false)
	return errs
}

// sidecar says that an init container runs beside the main ones.
func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
