package app

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
)

// flags are what the command line says.
type flags struct {
	configFile   string
	configDir    string
	configStrict bool
	rootDir      string
	hostname     string
	nodeIP       string
	runtime      string
	image        string
	manifests    string
	manifestURL  string
	featureGates string
	logFormat    string
	verbosity    int
	version      bool
	declared     []theme
}

// theme is a group of flags in --help.
type theme struct {
	title string
	set   *pflag.FlagSet
}

// themes declares the flags, grouped as --help shows them.
func (f *flags) themes() []theme {
	conf := pflag.NewFlagSet("configuration", pflag.ContinueOnError)
	conf.StringVar(&f.configFile, "config", "", "KubeletConfiguration file (kubelet.config.k8s.io/v1beta1). Flags override it.")
	conf.StringVar(&f.configDir, "config-dir", "", "folder of *.conf drop-in files, merged over --config in the order of their names")
	conf.BoolVar(&f.configStrict, "config-strict", false, "unknown and duplicate configuration fields are an error instead of a warning")
	conf.StringVar(&f.featureGates, "feature-gates", "", "A=true,B=false: feature gates, over those of the configuration file")

	node := pflag.NewFlagSet("node", pflag.ContinueOnError)
	node.StringVar(&f.rootDir, "root-dir", "/var/lib/kubelet", "folder of the agent's files: pods, volumes, state")
	node.StringVar(&f.hostname, "hostname-override", "", "name of the node instead of the host's name")
	node.StringVar(&f.nodeIP, "node-ip", "", "IP address of the node, or two of different families separated by a comma; 0.0.0.0 or :: finds the one of that family that the default route uses; may not be loopback")

	pods := pflag.NewFlagSet("pods", pflag.ContinueOnError)
	pods.StringVar(&f.manifests, "pod-manifest-path", "", "file or folder of static pods; the configuration field is staticPodPath")
	pods.StringVar(&f.manifestURL, "manifest-url", "", "URL of static pods; the configuration field is staticPodURL")

	rt := pflag.NewFlagSet("runtime", pflag.ContinueOnError)
	rt.StringVar(&f.runtime, "container-runtime-endpoint", "", "unix socket of the CRI runtime; the configuration field is containerRuntimeEndpoint")
	rt.StringVar(&f.image, "image-service-endpoint", "", "unix socket of the CRI image service where it is another one; the configuration field is imageServiceEndpoint")

	logs := pflag.NewFlagSet("logs", pflag.ContinueOnError)
	logs.IntVarP(&f.verbosity, "v", "v", 0, "log verbosity; 2 is what operators use, 4 shows each decision")
	logs.StringVar(&f.logFormat, "logging-format", "", `"text" or "json"; the configuration field is logging.format`)
	logs.BoolVar(&f.version, "version", false, "print the version and exit")
	logs.BoolP("help", "h", false, "print this text and exit")
	f.declared = []theme{{"Configuration", conf}, {"Node", node}, {"Static pods", pods}, {"Runtime", rt}, {"Logs and help", logs}}
	return append([]theme(nil), f.declared...)
}

// deprecated flags still work and print the stock notice.
var deprecated = [...]string{"container-runtime-endpoint", "image-service-endpoint", "pod-manifest-path", "manifest-url", "feature-gates"}

const deprecation = "This parameter should be set via the config file specified by the kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information."

// warnDeprecated prints one line per deprecated flag that was used.
func warnDeprecated(set *pflag.FlagSet, w io.Writer) {
	for _, name := range deprecated {
		if set.Changed(name) {
			fmt.Fprintf(w, "Flag --%s has been deprecated, %s\n", name, deprecation)
		}
	}
}

// override is the topmost configuration layer: the flags that were set.
func (f *flags) override(set *pflag.FlagSet) (map[string]any, error) {
	layer := map[string]any{}
	for flag, field := range map[string]string{
		"container-runtime-endpoint": "containerRuntimeEndpoint",
		"image-service-endpoint":     "imageServiceEndpoint",
		"manifest-url":               "staticPodURL",
	} {
		if set.Changed(flag) {
			layer[field] = set.Lookup(flag).Value.String()
		}
	}
	if set.Changed("pod-manifest-path") {
		path, err := absolute(f.manifests)
		if err != nil {
			return nil, err
		}
		layer["staticPodPath"] = path
	}
	if logging := f.logging(set); len(logging) > 0 {
		layer["logging"] = logging
	}
	gates, err := f.gates()
	if len(gates) > 0 {
		layer["featureGates"] = gates
	}
	return layer, err
}

// absolute leaves an empty path alone: it turns the source off.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

func (f *flags) logging(set *pflag.FlagSet) map[string]any {
	layer := map[string]any{}
	if set.Changed("v") {
		layer["verbosity"] = f.verbosity
	}
	if set.Changed("logging-format") {
		layer["format"] = f.logFormat
	}
	return layer
}

func (f *flags) gates() (map[string]any, error) {
	set, err := config.ParseGates(f.featureGates)
	if err != nil {
		return nil, fmt.Errorf("failed to parse kubelet flag: invalid argument %q for \"--feature-gates\" flag: %w", f.featureGates, err)
	}
	layer := map[string]any{}
	for name, on := range set {
		layer[name] = on
	}
	return layer, nil
}

// underscores makes --pod_manifest_path mean --pod-manifest-path.
func underscores(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}
