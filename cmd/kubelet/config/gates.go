package config

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
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
	// Part is the part of nodekit that does not act on the gate yet.
	Part string
	// Fixed gates have their default for good in nodekit.
	Fixed bool
	// Elsewhere gates concern other components than the node's; any value that
	// the stock kubelet takes is taken, with a warning that it has no effect.
	Elsewhere bool
	// Needs are the gates that must be on for this one to be.
	Needs []string
}

// Gates is the set of gates that one agent knows. Use StockGates, and Add for
// a vendor's own.
type Gates struct{ known map[string]Gate }

//go:embed gates.txt
var gatesText string

// StockGates are all the gates that the stock kubelet v1.37 knows.
func StockGates() (Gates, error) {
	g := Gates{known: map[string]Gate{}}
	for line := range tableLines(gatesText) {
		line, needs, _ := strings.Cut(line, " needs ")
		f := strings.Fields(line)
		if len(f) < 5 {
			return g, fmt.Errorf("gates.txt: want name, stage, default, lock and state, got %q", line)
		}
		gate := Gate{Name: f[0], Stage: Stage(strings.ToUpper(f[1])), Default: f[2] == "on", Locked: f[3] == "locked"}
		if needs != "" {
			gate.Needs = strings.Split(needs, ",")
		}
		switch f[4] {
		case "have":
			gate.Have = true
		case "always":
			gate.Have, gate.Fixed = true, true
		case "elsewhere":
			gate.Elsewhere = true
		default:
			gate.Part = strings.Join(f[5:], " ")
		}
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
	// Warnings tell of gates that will go away, and of gates that are set but
	// change nothing, since nodekit does not have the feature yet or no node has.
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

// Resolve applies what the user set. Its error lists every gate that can not be
// had, in the stock kubelet's words, or saying that nodekit does not have the
// feature.
func (g Gates) Resolve(set map[string]bool) (Features, error) {
	f := Features{on: map[string]bool{}, set: set}
	for name, gate := range g.known {
		f.on[name] = gate.Default
	}
	var errs []error
	for _, name := range sortedKeys(set) {
		if err := g.check(name, set[name]); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range sortedKeys(set) {
		gate := g.known[name]
		switch name {
		case "AllAlpha":
			f.setStage(g, Alpha, set)
		case "AllBeta":
			f.setStage(g, Beta, set)
		default:
			f.on[name] = set[name]
			if notice := gate.notice(set[name]); notice != "" {
				f.Warnings = append(f.Warnings, notice)
			}
		}
	}
	if notice := g.elsewhere(set); notice != "" {
		f.Warnings = append(f.Warnings, notice)
	}
	if len(errs) == 0 {
		errs = g.unmet(f)
	}
	return f, listed(errs)
}

// elsewhere says which of the gates that were set do nothing on a node.
func (g Gates) elsewhere(set map[string]bool) string {
	names := slices.DeleteFunc(sortedKeys(set), func(name string) bool { return !g.known[name].Elsewhere })
	if len(names) == 0 {
		return ""
	}
	return "no part of a node depends on these feature gates, so that they have no effect here: " + strings.Join(names, ", ")
}

// unmet finds gates that are on without those that they need.
func (g Gates) unmet(f Features) (errs []error) {
	for _, gate := range g.List() {
		if !f.on[gate.Name] || gate.Part != "" {
			continue
		}
		off := slices.DeleteFunc(slices.Clone(gate.Needs), func(need string) bool { return f.on[need] })
		if len(off) > 0 {
			errs = append(errs, gateError{off[0], fmt.Sprintf("%s is enabled, but depends on features that are disabled: %v", gate.Name, off)})
		}
	}
	return errs
}

// notice says that a gate changes nothing, or will go away.
func (g Gate) notice(value bool) string {
	switch {
	case g.Part != "" && value:
		return fmt.Sprintf("feature gate %s is on by default in v1.37, but %s does not have the feature yet", g.Name, g.Part)
	case g.Stage == GA || g.Stage == Deprecated:
		return fmt.Sprintf("feature gate %s is %s: it will be removed in a future release", g.Name, g.Stage)
	}
	return ""
}

func (g Gates) check(name string, value bool) error {
	if name == "AllAlpha" || name == "AllBeta" {
		return nil
	}
	gate, ok := g.known[name]
	switch {
	case !ok:
		return g.unknown(name)
	case value == gate.Default:
		return nil
	case gate.Locked:
		return gateError{name, fmt.Sprintf("cannot set feature gate %s to %t, feature is locked to %t", name, value, gate.Default)}
	case gate.Fixed:
		return gateError{name, fmt.Sprintf("cannot set feature gate %s to %t: nodekit always behaves as with %t", name, value, gate.Default)}
	case gate.Part != "" && value:
		return gateError{name, fmt.Sprintf("cannot set feature gate %s to true: nodekit does not have this feature (%s in v1.37, missing in %s)", name, gate.Stage, gate.Part)}
	case gate.Part != "":
		return gateError{name, fmt.Sprintf("cannot set feature gate %s to false: nodekit does not act on it yet (%s in v1.37, missing in %s)", name, gate.Stage, gate.Part)}
	}
	return nil
}

// gateError is about one gate.
type gateError struct{ gate, text string }

func (e gateError) Error() string { return e.text }

// setStage sets the gates of one stage that nodekit has and that nobody named.
func (f *Features) setStage(g Gates, stage Stage, set map[string]bool) {
	value := set["All"+strings.ToUpper(string(stage[0]))+strings.ToLower(string(stage[1:]))]
	var without []string
	for _, gate := range g.List() {
		if _, named := set[gate.Name]; named || gate.Stage != stage {
			continue
		}
		if gate.Elsewhere || gate.Have && !gate.Fixed {
			f.on[gate.Name] = value
		} else if gate.Part != "" && value != gate.Default {
			without = append(without, gate.Name)
		}
	}
	if len(without) > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("setting all %s gates to %t leaves out what nodekit does not act on yet: %s", stage, value, strings.Join(without, ", ")))
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
	return &hinted{err: gateError{name, "unrecognized feature gate: " + name}, hint: hint}
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
			return nil, fmt.Errorf("invalid value of %s: %s, want true or false", name, value)
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

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Has says that nodekit does what the gate of that name is about.
func (g Gates) Has(name string) bool {
	for _, gate := range g.List() {
		if gate.Name == name {
			return gate.Have
		}
	}
	return false
}

// Lacks says that nodekit does not, or not in all, what the gate of that name is
// about, though it is about nodes; AllAlpha and AllBeta are such names.
func (g Gates) Lacks(name string) bool {
	gate := g.known[name]
	return !gate.Have && !gate.Elsewhere
}

// Settable says that nodekit acts on either value of the gate.
func (g Gate) Settable() bool { return g.Have && !g.Locked && !g.Fixed }
