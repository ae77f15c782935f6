package wire

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/podactor"
)

// NoCgroups leaves pod cgroups to the runtime.
func NoCgroups() node.Cgroups { return noCgroups{} }

type noCgroups struct{}

func (noCgroups) Ensure(context.Context, *corev1.Pod) error { return nil }
func (noCgroups) Remove(context.Context, string) error      { return nil }

// AdmitAll admits every pod: what it gets is what the runtime gives.
func AdmitAll() node.Allocator { return admitAll{} }

type admitAll struct{}

func (admitAll) Admit(context.Context, podactor.AdmitRequest) (lifecycle.Admission, error) {
	return lifecycle.Admission{Verdict: lifecycle.VerdictAdmit}, nil
}

func (admitAll) Release(context.Context, string) error { return nil }
