package podspec

import (
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// serviceVars tell a container where services are: those of its namespace,
// unless the pod does without, and always "kubernetes" of the default
// namespace, by which programs find the API server.
func serviceVars(pod *corev1.Pod, services []*corev1.Service) []runtime.EnvVar {
	var vars []runtime.EnvVar
	for _, s := range linkedServices(pod, services) {
		vars = append(vars, varsOf(s)...)
	}
	return vars
}

// linkedServices are those that the container is told of, by name. Of two of
// one name, the namespace's own wins.
func linkedServices(pod *corev1.Pod, services []*corev1.Service) []*corev1.Service {
	links := pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks
	byName := map[string]*corev1.Service{}
	for _, s := range services {
		if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.Ports) == 0 {
			continue
		}
		master := s.Namespace == corev1.NamespaceDefault && s.Name == "kubernetes"
		own := links && s.Namespace == pod.Namespace
		if own || master && byName[s.Name] == nil {
			byName[s.Name] = s
		}
	}
	linked := make([]*corev1.Service, 0, len(byName))
	for _, s := range byName {
		linked = append(linked, s)
	}
	slices.SortFunc(linked, func(a, b *corev1.Service) int { return strings.Compare(a.Name, b.Name) })
	return linked
}

// varsOf are the variables of one service: the ones of Kubernetes, and those
// that Docker's links had.
func varsOf(s *corev1.Service) []runtime.EnvVar {
	prefix, ip, ports := varName(s.Name), s.Spec.ClusterIP, s.Spec.Ports
	var vars []runtime.EnvVar
	add := func(name, text string) { vars = append(vars, runtime.EnvVar{Name: name, Value: text}) }

	add(prefix+"_SERVICE_HOST", ip)
	add(prefix+"_SERVICE_PORT", number(ports[0].Port))
	for _, p := range ports {
		if p.Name != "" {
			add(prefix+"_SERVICE_PORT_"+varName(p.Name), number(p.Port))
		}
	}
	for i, p := range ports {
		protocol := string(p.Protocol)
		if protocol == "" {
			protocol = string(corev1.ProtocolTCP)
		}
		url := strings.ToLower(protocol) + "://" + net.JoinHostPort(ip, number(p.Port))
		if i == 0 {
			add(prefix+"_PORT", url)
		}
		port := prefix + "_PORT_" + number(p.Port) + "_" + strings.ToUpper(protocol)
		add(port, url)
		add(port+"_PROTO", strings.ToLower(protocol))
		add(port+"_PORT", number(p.Port))
		add(port+"_ADDR", ip)
	}
	return vars
}

func varName(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

func number(port int32) string { return strconv.Itoa(int(port)) }
