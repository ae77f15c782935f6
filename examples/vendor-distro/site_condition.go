package main

import (
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
)

// siteCondition shows the site among each pod's conditions.
func siteCondition() nodefx.Option {
	return nodefx.AddStatusMutator("site", func(s Site) node.StatusMutatorFunc {
		return func(update node.StatusUpdate) corev1.PodStatus {
			status := *update.Status.DeepCopy()
			status.Conditions = append(status.Conditions, corev1.PodCondition{
				Type: "vendor.example/Site", Status: corev1.ConditionTrue, Reason: "Known", Message: s.Name,
			})
			return status
		}
	})
}
