package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
)

// flags are what the command line says. The fields are the flags that set
// nothing in KubeletConfiguration; the others go to override.
type flags struct {
	configFile   string
	configDir    string
	configStrict bool
	preflight    bool

	rootDir       string
	localObjects  string
	hostname      string
	nodeIP        string
	nodeLabels    map[string]string
	cloudProvider string

	kubeconfig          string
	bootstrapKubeconfig string
	certDir             string

	credentialConfig string
	credentialBinDir string

	seccompDefault       bool
	mounter              string
	lockFile             string
	exitOnLockContention bool
	ignoreEviction       bool
	version              string

	// logFormat is what failures are reported in.
	logFormat string
	declared  []theme
}

// own says where the flags without a field of the configuration go; of those
// that are missing here nothing needs the value.
func (f *flags) own() map[string]any {
	return map[string]any{
		"config": &f.configFile, "config-dir": &f.configDir,
		"root-dir": &f.rootDir, "hostname-override": &f.hostname, "node-ip": &f.nodeIP,
		"node-labels": &f.nodeLabels, "cloud-provider": &f.cloudProvider,
		"kubeconfig": &f.kubeconfig, "bootstrap-kubeconfig": &f.bootstrapKubeconfig, "cert-dir": &f.certDir,
		"image-credential-provider-config": &f.credentialConfig, "image-credential-provider-bin-dir": &f.credentialBinDir,
		"seccomp-default": &f.seccompDefault, "experimental-mounter-path": &f.mounter,
		"experimental-allocatable-ignore-eviction": &f.ignoreEviction,
		"lock-file": &f.lockFile, "exit-on-lock-contention": &f.exitOnLockContention, "version": &f.version,
	}
}

// theme is a group of flags in --help.
type theme struct {
	title string
	set   *pflag.FlagSet
}

// value is one flag of the stock kubelet.
type value struct {
	flag  config.Flag
	read  kind
	now   any
	given bool
	into  any // the field of flags that takes it; nil: none
}

func (v *value) Set(text string) error {
	var prev any
	if v.given { // the default is replaced, not added to
		prev = v.now
	}
	now, err := v.read(prev, text)
	if err != nil {
		return err
	}
	v.now, v.given = now, true
	v.store()
	return nil
}

func (v *value) store() {
	switch into := v.into.(type) {
	case *string:
		*into = shown(v.now)
	case *bool:
		*into = v.now == true
	case *map[string]string:
		*into = map[string]string{}
		m, _ := v.now.(map[string]any)
		for key, one := range m {
			(*into)[key] = shown(one)
		}
	}
}

func (v *value) String() string {
	if v == nil {
		return ""
	}
	return shown(v.now)
}

func (v *value) Type() string { return v.flag.Type }

// themes declares the flags, grouped as --help shows them.
func (f *flags) themes() ([]theme, error) {
	defaults, err := flagDefaults()
	if err != nil {
		return nil, err
	}
	own := f.own()
	for _, flag := range config.Flags() {
		if len(f.declared) == 0 || f.declared[len(f.declared)-1].title != flag.Theme {
			f.declared = append(f.declared, theme{flag.Theme, pflag.NewFlagSet(flag.Theme, pflag.ContinueOnError)})
		}
		if err := declare(f.declared[len(f.declared)-1].set, flag, defaults, own[flag.Name]); err != nil {
			return nil, err
		}
	}
	f.addOurs()
	return append([]theme(nil), f.declared...), nil
}

// ours marks a flag that the stock kubelet does not have.
const ours = " (nodekit's own)"

// addOurs declares the flags that the stock kubelet does not have.
func (f *flags) addOurs() {
	first, last := f.declared[0].set, f.declared[len(f.declared)-1].set
	for _, t := range f.declared {
		if t.title == "Static pods" {
			t.set.StringVar(&f.localObjects, "local-objects-dir", "", "file or folder of ConfigMaps and Secrets for static pods, which may refer to them then"+ours)
		}
	}
	first.BoolVar(&f.configStrict, "config-strict", false, "unknown and duplicate configuration fields are an error instead of a warning"+ours)
	first.BoolVar(&f.preflight, "preflight", false, "read the flags and files of a node, touch nothing, and list what would be the same, different or unsupported; exit code 1 where anything is unsupported"+ours)
	last.BoolP("help", "h", false, "print this text and exit")
}

func declare(set *pflag.FlagSet, flag config.Flag, defaults map[string]any, into any) error {
	v := &value{flag: flag, read: kindOf(flag.Name, flag.Type), into: into}
	switch {
	case flag.Field != "":
		if v.now = at(defaults, flag.Field); v.now == nil { // JSON leaves out what is empty
			v.now = emptyOf(flag.Type)
		}
	case flag.Default != "":
		now, err := v.read(nil, flag.Default)
		if err != nil {
			return fmt.Errorf("default of --%s: %w", flag.Name, err)
		}
		v.now = now
	}
	v.store()
	short := ""
	if flag.Name == "v" {
		short = "v"
	}
	declared := set.VarPF(v, flag.Name, short, flag.Usage)
	if flag.Type == "bool" || flag.Type == "version" {
		declared.NoOptDefVal = "true"
	}
	return nil
}

// emptyOf is what a flag of a type shows when nothing is set.
func emptyOf(typ string) any {
	switch typ {
	case "bool":
		return false
	case "int32", "int64", "Level", "quantity":
		return 0
	case "duration":
		return "0s"
	}
	return nil
}

// flagDefaults are the stock defaults in the shape of the JSON document.
func flagDefaults() (map[string]any, error) {
	kc, err := config.Default()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(kc)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // 1000000, not 1e+06
	return doc, dec.Decode(&doc)
}

// at is the value at a path of a document; nil where there is none.
func at(doc map[string]any, path string) any {
	parent, rest, nested := strings.Cut(path, ".")
	if !nested {
		return doc[path]
	}
	below, _ := doc[parent].(map[string]any)
	return at(below, rest)
}

// given lists the stock flags that the command line has, by name.
func given(set *pflag.FlagSet) (out []*value) {
	set.Visit(func(flag *pflag.Flag) {
		if v, ok := flag.Value.(*value); ok {
			out = append(out, v)
		}
	})
	return out
}

// override is the topmost configuration layer: the flags that were set.
func (f *flags) override(set *pflag.FlagSet) (map[string]any, error) {
	layer := map[string]any{}
	for _, v := range given(set) {
		if v.flag.Field == "" {
			continue
		}
		now := v.now
		if v.flag.Name == "pod-manifest-path" {
			path, err := absolute(shown(now))
			if err != nil {
				return nil, err
			}
			now = path
		}
		put(layer, v.flag.Field, now)
	}
	if f.seccompDefault { // either turns it on
		put(layer, "seccompDefault", true)
	}
	return layer, nil
}

// put sets the value at a path of a document.
func put(doc map[string]any, path string, v any) {
	parent, rest, nested := strings.Cut(path, ".")
	if !nested {
		doc[path] = v
		return
	}
	below, ok := doc[parent].(map[string]any)
	if !ok {
		below = map[string]any{}
		doc[parent] = below
	}
	put(below, rest, v)
}

// absolute leaves an empty path alone: it turns the source off.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// underscores makes --pod_manifest_path mean --pod-manifest-path.
func underscores(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}
