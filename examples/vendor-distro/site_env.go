package main

import (
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/nodefx"
	"nodekit.dev/runtime"
)

// siteEnv tells every container where it runs.
func siteEnv() nodefx.Option {
	return nodefx.AddContainerMutator("site-env", func(s Site) node.ContainerMutatorFunc {
		return func(_ *corev1.Pod, cfg *runtime.ContainerConfig) error {
			cfg.Env = append(cfg.Env, runtime.EnvVar{Name: "SITE", Value: s.Name})
			return nil
		}
	})
}

// siteSandbox marks every sandbox for the vendor's CNI plugin.
func siteSandbox() nodefx.Option {
	return nodefx.AddSandboxMutator("site", func(s Site) node.SandboxMutatorFunc {
		return func(_ *corev1.Pod, cfg *runtime.SandboxConfig) error {
			cfg.Labels["vendor.example/site"] = s.Name
			return nil
		}
	})
}
