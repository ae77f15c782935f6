package main

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
)

// admitter refuses what a plain process can not be given: nobody must run with
// less confinement than they asked for.
type admitter struct{}

// Admit implements [node.Admitter].
func (admitter) Admit(_ context.Context, req node.AdmitRequest) (lifecycle.Admission, error) {
	if field := unsupported(&req.Pod.Spec); field != "" {
		return lifecycle.Admission{
			Verdict: lifecycle.VerdictReject, Reason: "NotAProcess",
			Message: fmt.Sprintf("%s: this node runs processes of the host, not containers", field),
		}, nil
	}
	return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}, nil
}

// unsupported names the first field that asks for a container.
func unsupported(spec *corev1.PodSpec) string {
	switch {
	case !spec.HostNetwork:
		return "spec.hostNetwork must be true"
	case len(spec.Volumes) > 0:
		return "spec.volumes"
	case spec.RuntimeClassName != nil:
		return "spec.runtimeClassName"
	case spec.SecurityContext != nil && !reflect.DeepEqual(spec.SecurityContext, &corev1.PodSecurityContext{}):
		return "spec.securityContext"
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			switch c := &list[i]; {
			case len(c.Command) == 0:
				return "command of " + c.Name + " must be set"
			case c.SecurityContext != nil:
				return "securityContext of " + c.Name
			case len(c.Resources.Limits) > 0:
				return "resources.limits of " + c.Name
			}
		}
	}
	return ""
}
