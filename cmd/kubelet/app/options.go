package app

import (
	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/node/nodefx"
)

// Option changes the command.
type Option func(*options)

type options struct {
	name        string
	version     string
	vendorFlags *pflag.FlagSet
	kinds       []config.Kind
	gates       []config.Gate
	labels      func(key string) bool
	references  bool // of static pods
	agent       []func(*config.Loaded) ([]nodefx.Option, error)
}

func newOptions(opts []Option) *options {
	o := &options{name: "kubelet", version: Version(), vendorFlags: pflag.NewFlagSet("vendor", pflag.ContinueOnError)}
	o.labels = func(string) bool { return false }
	for _, set := range opts {
		set(o)
	}
	return o
}

// Named sets the command's name and version as --version and --help show them.
// Default: kubelet, and the version of the module.
func Named(name, version string) Option {
	return func(o *options) { o.name, o.version = name, version }
}

// AddFlags adds flags of the vendor's own; --help and /flagz show them.
func AddFlags(add func(*pflag.FlagSet)) Option {
	return func(o *options) { add(o.vendorFlags) }
}

// AddKind adds a configuration kind that may stand in the --config file or a
// drop-in. It is decoded strictly; config.Get reads it back.
func AddKind(kind config.Kind) Option {
	return func(o *options) { o.kinds = append(o.kinds, kind) }
}

// AddGate adds a feature gate.
func AddGate(gate config.Gate) Option {
	return func(o *options) { o.gates = append(o.gates, gate) }
}

// Agent adds options of the agent, worked out from the loaded configuration.
// It is called once per start, after flags and files are read.
func Agent(fn func(*config.Loaded) ([]nodefx.Option, error)) Option {
	return func(o *options) { o.agent = append(o.agent, fn) }
}

// AllowLabels lets --node-labels set labels below kubernetes.io and k8s.io that
// the stock kubelet refuses. The API server's NodeRestriction has its own word.
func AllowLabels(allowed func(key string) bool) Option {
	return func(o *options) { o.labels = allowed }
}

// AllowReferences lets static pods refer to ConfigMaps and Secrets, as
// --local-objects-dir does: for a vendor whose own getters have them.
func AllowReferences() Option { return func(o *options) { o.references = true } }
