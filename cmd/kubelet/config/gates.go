package config

import (
	_ "embed"
	"fmt"
	"maps"
	"sort"
	"strconv"
	"strings"
)

// Stage is how far a feature gate has come.
type Stage string

// The stages of the stock kubelet's gate table.
const (
	Alpha      Stage = "ALPHA"
	Beta       Stage = "BETA"
	GA         Stage = "GA"
	Deprecated Stage = "DEPRECATED"
)

// Gate is one feature gate.
type Gate struct {
	Name    string
	Stage   Stage
	Default bool
	// Locked gates can not be set to the other value (the stock kubelet locks
	// nearly every GA gate).
	Locked bool
	// Have says that nodekit acts on the gate, or has the behaviour that it
	// would turn on for good.
	Have bool
}

// Gates is the set of gates that one agent knows. Use StockGates, and Add for
// a vendor's own.
type Gates struct{ known map[string]Gate }

//go:embed gates.txt
var gatesText string

// StockGates are the gates of the stock kubelet v1.37 that reach the node.
func StockGates() (Gates, error) {
	g := Gates{known: map[string]Gate{}}
	for line := range strings.Lines(gatesText) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 4 {
			return g, fmt.Errorf("gates.txt: want name, stage, default and state, got %q", line)
		}
		gate := Gate{Name: f[0], Stage: Stage(strings.ToUpper(f[1])), Default: f[2] == "on", Have: f[3] == "have"}
		gate.Locked = gate.Stage == GA
		g.known[gate.Name] = gate
	}
	return g, nil
}

// AddGate adds a vendor's own gate. A name that exists already is an error.
func (g Gates) AddGate(gate Gate) error {
	if _, ok := g.known[gate.Name]; ok {
		return fmt.Errorf("feature gate %s exists already", gate.Name)
	}
	gate.Have = true
	g.known[gate.Name] = gate
	return nil
}

// Features are gates with their values: a plain value, nobody's global.
type Features struct {
	on  map[string]bool
	set map[string]bool
	// Warnings tell of gates that were set to their default although nodekit
	// does not have the feature yet.
	Warnings []string
}

// Enabled says whether a gate is on; unknown gates are off.
func (f Features) Enabled(name string) bool { return f.on[name] }

// All are the values of all gates.
func (f Features) All() map[string]bool { return maps.Clone(f.on) }

// SetTo says what the user set a gate to; set is false where nothing was said.
func (f Features) SetTo(name string) (value, set bool) {
	value, set = f.set[name]
	return value, set
}

// Resolve applies what the user set. Its errors are the stock kubelet's words,
// or say that nodekit does not have the feature.
func (g Gates) Resolve(set map[string]bool) (Features, error) {
	f := Features{on: map[string]bool{}, set: set}
	for name, gate := range g.known {
		f.on[name] = gate.Default
	}
	for _, name := range sortedKeys(set) {
		if err := g.check(name, set[name]); err != nil {
			return f, err
		}
		if gate := g.known[name]; gate.Name != "" && !gate.Have && set[name] {
			f.Warnings = append(f.Warnings, fmt.Sprintf("feature gate %s is on by default in v1.37, but nodekit does not have the feature yet", name))
		}
	}
	for name, value := range set {
		switch name {
		case "AllAlpha":
			f.setStage(g, Alpha, value, set)
		case "AllBeta":
			f.setStage(g, Beta, value, set)
		default:
			f.on[name] = value
		}
	}
	return f, nil
}

func (g Gates) check(name string, value bool) error {
	if name == "AllAlpha" || name == "AllBeta" {
		return nil
	}
	gate, ok := g.known[name]
	switch {
	case !ok:
		return g.unknown(name)
	case gate.Locked && value != gate.Default:
		return fmt.Errorf("cannot set feature gate %s to %t, feature is locked to %t", name, value, gate.Default)
	case !gate.Have && value != gate.Default && value:
		return fmt.Errorf("cannot set feature gate %s to true: nodekit does not have this feature (%s in v1.37)", name, gate.Stage)
	case !gate.Have && value != gate.Default:
		return fmt.Errorf("cannot set feature gate %s to false: nodekit does not act on it yet (%s in v1.37)", name, gate.Stage)
	}
	return nil
}

func (f Features) setStage(g Gates, stage Stage, value bool, explicit map[string]bool) {
	for name, gate := range g.known {
		if _, set := explicit[name]; !set && gate.Stage == stage && gate.Have {
			f.on[name] = value
		}
	}
}

// unknown says what to do about a gate that v1.37 does not have.
func (g Gates) unknown(name string) error {
	hint, removed := removedGates()[name]
	if near := nearest(name, g.known); !removed && near != "" {
		hint = fmt.Sprintf("Feature gate %s is not one of v1.37. Did you mean %s?", name, near)
	} else if !removed {
		hint = fmt.Sprintf("Feature gate %s is not one of v1.37; it may have been removed in an earlier release. Remove it from --feature-gates and from featureGates.", name)
	}
	return &hinted{err: fmt.Errorf("unrecognized feature gate: %s", name), hint: hint}
}

// hinted is an error with the stock first line and a second line of ours.
type hinted struct {
	err  error
	hint string
}

func (h *hinted) Error() string { return h.err.Error() }
func (h *hinted) Unwrap() error { return h.err }

// Hint is a sentence that tells the user what to do.
func (h *hinted) Hint() string { return h.hint }

// removedGates are gates that were part of the kubelet once, with what to do.
func removedGates() map[string]string {
	const gone = "Feature gate %s was removed in v%s; the feature is always on. Remove it from --feature-gates and from featureGates."
	hints := map[string]string{}
	for name, since := range map[string]string{
		"SetHostnameAsFQDN": "1.24", "RuntimeClass": "1.24", "PodOverhead": "1.26",
		"IdentifyPodOS": "1.27", "GRPCContainerProbe": "1.29", "AppArmor": "1.33",
		"AppArmorFields": "1.33", "CloudDualStackNodeIPs": "1.32", "IPTablesOwnershipCleanup": "1.30",
	} {
		hints[name] = fmt.Sprintf(gone, name, since)
	}
	return hints
}

// ParseGates reads the value of --feature-gates: "A=true,B=false".
func ParseGates(s string) (map[string]bool, error) {
	set := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("missing bool value for %s", part)
		}
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("invalid value of %s=%s, err: %w", name, value, err)
		}
		set[strings.TrimSpace(name)] = on
	}
	return set, nil
}

// List returns the gates by name, for --help and /flagz.
func (g Gates) List() []Gate {
	var out []Gate
	for _, name := range sortedKeys(g.known) {
		out = append(out, g.known[name])
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
