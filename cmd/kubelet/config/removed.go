package config

// RemovedFlag returns what to do about a flag that the kubelet once had, ""
// for any other name. The name is without its dashes.
func RemovedFlag(name string) string {
	const cni = "Configure CNI in the container runtime (containerd: cni.conf_dir and cni.bin_dirs)."
	return map[string]string{
		"docker-endpoint":                        "Removed in v1.24 with dockershim. Use containerRuntimeEndpoint in the configuration file, or --container-runtime-endpoint.",
		"image-pull-progress-deadline":           "Removed in v1.24 with dockershim. Set the progress timeout in the container runtime (containerd: image_pull_progress_timeout).",
		"network-plugin":                         "Removed in v1.24 with dockershim. " + cni,
		"cni-conf-dir":                           "Removed in v1.24 with dockershim. " + cni,
		"cni-bin-dir":                            "Removed in v1.24 with dockershim. " + cni,
		"cni-cache-dir":                          "Removed in v1.24 with dockershim. " + cni,
		"network-plugin-mtu":                     "Removed in v1.24 with dockershim. Set the MTU in the CNI configuration.",
		"experimental-dockershim-root-directory": "Removed in v1.24 with dockershim. Remove the flag; nothing replaces it.",
		"container-runtime":                      "Removed in v1.27: \"remote\" was its only value. Remove the flag.",
		"pod-infra-container-image":              "Removed in v1.35. Set the sandbox image in the container runtime and pin it there (containerd: pinned_images.sandbox).",
		"experimental-check-node-capabilities-before-mount": "Removed in v1.24. Remove the flag; nothing replaces it.",
		"really-crash-for-testing":                          "Removed in v1.24: a panic always ends the process. Remove the flag.",
		"non-masquerade-cidr":                               "Removed in v1.24. Masquerading belongs to the CNI plugin or to ip-masq-agent.",
	}[name]
}
