package wire

import (
	"nodekit.dev/volume"
	"nodekit.dev/volume/selinux"
)

// Labeling is the configuration with SELinux labels for volumes, where the host
// has SELinux and no labels of a vendor's are there.
func (c *Contents) Labeling(cfg Config, v volume.Config) (volume.Config, error) {
	if v.Labels != nil || !cfg.SELinux.Host.Enabled {
		return v, nil
	}
	rules := cfg.SELinux
	if rules.Recorded == nil {
		rules.Recorded = c.Recorded
	}
	labels, err := selinux.New(rules)
	if err != nil {
		return v, err
	}
	v.Labels = labels
	return v, nil
}
