package volumemetrics

import (
	"errors"

	"nodekit.dev/volume"
	"nodekit.dev/volume/csi"
	"nodekit.dev/volume/selinux"
	"nodekit.dev/volume/stats"
)

// Observer observes the volume manager.
func (m *Metrics) Observer() volume.Observer {
	return volume.Observer{Done: func(op volume.Operation) {
		m.Done(Operation{
			Kind: op.Kind, Plugin: op.PluginKind(), Block: op.Block, Took: op.Took, Whole: op.Whole, Err: op.Err,
		})
	}}
}

// StatsObserver observes those who measure volumes.
func (m *Metrics) StatsObserver() stats.Observer {
	return stats.Observer{Measured: func(one stats.Measured) { m.Measured(one.Source, one.Took) }}
}

// CSIObserver observes the calls of CSI drivers.
func (m *Metrics) CSIObserver() csi.Observer {
	return csi.Observer{Call: func(c csi.Call) { m.Called(c.Driver, c.Method, c.Code, false, c.Took) }}
}

// LabelObserver observes the SELinux labels of volumes.
func (m *Metrics) LabelObserver() func(selinux.Outcome) {
	return func(o selinux.Outcome) {
		l := Labeling{Plugin: o.Plugin, AccessMode: o.AccessMode, Outcome: LabelUnknown, Refused: o.Refused}
		var mismatch *selinux.MismatchError
		var conflict *selinux.ConflictError
		switch {
		case o.Err == nil:
			l.Outcome = LabelAdmitted
		case errors.As(o.Err, &mismatch):
			l.Outcome = LabelsDiffer
		case errors.As(o.Err, &conflict):
			l.Outcome = LabelTaken
		}
		m.Labeled(l)
	}
}

// Claims are the figures of volumes that are bound to claims.
func Claims(all []stats.Stats) []Claim {
	var out []Claim
	for _, s := range all {
		if s.Claim.Name == "" {
			continue
		}
		c := Claim{
			Namespace: s.Claim.Namespace, Name: s.Claim.Name, Capacity: s.Capacity, Available: s.Available, Used: s.Used,
			Inodes: s.Inodes, InodesFree: s.InodesFree, InodesUsed: s.InodesUsed,
		}
		if s.Condition != nil {
			c.Abnormal = &s.Condition.Abnormal
		}
		out = append(out, c)
	}
	return out
}

// Backends are the conditions of what is behind CSI drivers.
func Backends(known map[string][]stats.BackendCondition) (out []Backend) {
	for driver, conditions := range known {
		for _, c := range conditions {
			out = append(out, Backend{Driver: driver, Status: c.Status, Reason: c.Reason})
		}
	}
	return out
}

// CensusOf is the manager's.
func CensusOf(c volume.Census) Census {
	return Census{
		Desired: c.Desired, Mounted: c.Mounted,
		Found: c.Volumes, FoundErrors: c.Failed, Cleaned: c.Cleaned, CleanErrors: c.CleanFailed,
	}
}
