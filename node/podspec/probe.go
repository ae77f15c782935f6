package podspec

import corev1 "k8s.io/api/core/v1"

// ProbeCommand is the command of an exec probe of a container, with $(NAME)
// replaced where the container's env gives NAME a plain value. As with the stock
// kubelet, variables from elsewhere stay as they are written.
func ProbeCommand(c *corev1.Container, command []string) []string {
	return expandAll(command, func(name string) (value string, known bool) {
		for i := range c.Env {
			if c.Env[i].Name == name && c.Env[i].ValueFrom == nil {
				value, known = c.Env[i].Value, true // the last one counts
			}
		}
		return value, known
	})
}
