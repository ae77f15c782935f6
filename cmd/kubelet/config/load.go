package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

const (
	kubeletAPIVersion = "kubelet.config.k8s.io/v1beta1"
	kubeletKind       = "KubeletConfiguration"
)

// KubeletConfiguration is the stock type, under the name users know.
type KubeletConfiguration = kubeletv1beta1.KubeletConfiguration

// Files says where configuration is read from.
type Files struct {
	// Main is the file of --config; empty: none.
	Main string
	// DropInDir is the folder of --config-dir; its *.conf files and those of the
	// folders in it are merged over the main file, by name. Empty: none.
	DropInDir string
	// Strict turns unknown and duplicate fields into an error.
	Strict bool
	// Override is the topmost layer, in the shape of the JSON document: what
	// flags set. Maps and lists in it replace those of files whole, but for
	// feature gates. Unlike in files, an empty value counts.
	Override map[string]any
}

// Kind is a configuration kind of a vendor; see Register.
type Kind struct {
	apiVersion, kind string
	typ              reflect.Type
}

// Register declares a document kind that may stand beside KubeletConfiguration
// in the same file (after a ---) or in a drop-in. It is decoded strictly. The
// result goes to NewLoader; read the document back with Get.
func Register[T any](apiVersion, kind string) Kind {
	return Kind{apiVersion: apiVersion, kind: kind, typ: reflect.TypeFor[T]()}
}

// Loader reads configuration files. It holds no state between loads.
type Loader struct{ kinds []Kind }

// NewLoader makes a loader that knows KubeletConfiguration and these kinds.
func NewLoader(kinds ...Kind) *Loader { return &Loader{kinds: kinds} }

// Loaded is the outcome of one load.
type Loaded struct {
	// Kubelet is complete: defaults, files and overrides merged.
	Kubelet KubeletConfiguration
	// Set holds what files and overrides set, in the shape of the JSON document.
	Set map[string]any
	// Problems are unknown and duplicate fields, in the order of reading.
	Problems []Problem
	// Ignored are the files of the drop-in folder that are not *.conf.
	Ignored []string
	vendor  map[reflect.Type]any
	places  map[string]Place
	byFlag  map[string]any
}

// Where says what set a field: "FILE:LINE", or "--FLAG"; empty where it has
// its default.
func (l *Loaded) Where(path string) string {
	if isSet(l.byFlag, path) {
		if flag := FlagOf(path); flag != "" {
			return "--" + flag
		}
		return "--feature-gates" // the only map whose keys have places of their own
	}
	if place, ok := l.places[path]; ok {
		return place.String()
	}
	return ""
}

// isSet says whether a document has a value at a path.
func isSet(doc map[string]any, path string) bool {
	first, rest, nested := strings.Cut(path, ".")
	value, ok := doc[first]
	if !ok || !nested {
		return ok
	}
	below, isMap := value.(map[string]any)
	if !isMap {
		return false
	}
	_, whole := below[rest] // a map's key may hold a dot
	return whole || isSet(below, rest)
}

// Get returns the vendor's document of type T, false where no file had one.
func Get[T any](l *Loaded) (T, bool) {
	v, ok := l.vendor[reflect.TypeFor[T]()].(*T)
	if !ok {
		var zero T
		return zero, false
	}
	return *v, true
}

// Vendor holds the documents of vendors' kinds by type name, for /configz.
func (l *Loaded) Vendor() map[string]any {
	out := map[string]any{}
	for t, v := range l.vendor {
		out[t.String()] = v
	}
	return out
}

// Load reads, merges and decodes. It does not validate: see Validate.
func (l *Loader) Load(files Files) (*Loaded, error) {
	docs, ignored, err := readAll(files)
	if err != nil {
		return nil, err
	}
	out := &Loaded{
		Set: map[string]any{}, Ignored: ignored, byFlag: files.Override,
		vendor: map[reflect.Type]any{}, places: map[string]Place{},
	}
	for _, doc := range docs {
		if err := l.take(doc, out); err != nil {
			return nil, err
		}
	}
	if err := out.refuse(files.Strict); err != nil {
		return nil, err
	}
	return out, out.complete(files.Override)
}

// complete decodes what the files add up to, fills in the defaults, and lays
// the flags over both.
func (out *Loaded) complete(flags map[string]any) error {
	if err := decode(out.Set, &out.Kubelet); err != nil {
		return err
	}
	out.Kubelet.APIVersion, out.Kubelet.Kind = kubeletAPIVersion, kubeletKind
	if err := applyDefaults(&out.Kubelet); err != nil {
		return err
	}
	merge(out.Set, flags)
	return override(&out.Kubelet, flags)
}

// take merges one document into what is set, or decodes a vendor's kind.
func (l *Loader) take(doc document, out *Loaded) error {
	if doc.apiVersion == kubeletAPIVersion && doc.kind == kubeletKind {
		return takeKubelet(doc, out)
	}
	for _, k := range l.kinds {
		if k.apiVersion == doc.apiVersion && k.kind == doc.kind {
			return takeVendor(doc, k, out)
		}
	}
	return fmt.Errorf("%s:%d: no kind %q is registered for version %q; known: %s", doc.file, doc.root.Line, doc.kind, doc.apiVersion, l.known())
}

func takeKubelet(doc document, out *Loaded) error {
	seen := checkFields(doc, reflect.TypeFor[KubeletConfiguration]())
	if len(seen.broken) > 0 {
		return fmt.Errorf("failed to load kubelet config file: %w", listed(seen.broken))
	}
	out.Problems = append(out.Problems, seen.problems...)
	for path, place := range seen.places {
		out.places[path] = place
	}
	v, err := plain(doc.root)
	if err != nil {
		return fmt.Errorf("%s: %w", doc.file, err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: keys must be strings", doc.file)
	}
	var alone KubeletConfiguration
	if err := decode(m, &alone); err != nil {
		return fmt.Errorf("failed to load kubelet config file %s: %w", doc.file, err)
	}
	resolvePaths(m, doc.file)
	merge(out.Set, m)
	return nil
}

// resolvePaths makes relative paths start at the folder of the file that they
// stand in, as in the stock kubelet.
func resolvePaths(m map[string]any, file string) {
	for _, field := range []string{
		"staticPodPath", "authentication.x509.clientCAFile", "tlsCertFile", "tlsPrivateKeyFile", "resolvConf", "volumePluginDir", "podLogsDir",
	} {
		in, name := m, field
		for parent, rest, nested := strings.Cut(name, "."); nested; parent, rest, nested = strings.Cut(name, ".") {
			in, _ = in[parent].(map[string]any)
			name = rest
		}
		if path, isString := in[name].(string); isString && path != "" && !filepath.IsAbs(path) {
			in[name] = filepath.Join(filepath.Dir(file), path)
		}
	}
}

func (l *Loader) known() string {
	names := []string{kubeletKind + " of " + kubeletAPIVersion}
	for _, k := range l.kinds {
		names = append(names, k.kind+" of "+k.apiVersion)
	}
	return strings.Join(names, ", ")
}

func takeVendor(doc document, k Kind, out *Loaded) error {
	seen := checkFields(doc, k.typ)
	for _, p := range withoutTypeMeta(seen.problems) {
		seen.broken = append(seen.broken, p)
	}
	if len(seen.broken) > 0 {
		return listed(seen.broken)
	}
	v, err := plain(doc.root)
	if err != nil {
		return fmt.Errorf("%s: %w", doc.file, err)
	}
	target, ok := out.vendor[k.typ]
	if !ok {
		target = reflect.New(k.typ).Interface()
	}
	if err := decode(v, target); err != nil {
		return fmt.Errorf("%s: %s: %w", doc.file, k.kind, err)
	}
	out.vendor[k.typ] = target
	return nil
}

// withoutTypeMeta lets vendors leave apiVersion and kind out of their type.
func withoutTypeMeta(problems []Problem) []Problem {
	var kept []Problem
	for _, p := range problems {
		if p.Field != "apiVersion" && p.Field != "kind" {
			kept = append(kept, p)
		}
	}
	return kept
}

func (out *Loaded) refuse(strict bool) error {
	if !strict || len(out.Problems) == 0 {
		return nil
	}
	errs := make([]error, len(out.Problems))
	for i, p := range out.Problems {
		errs[i] = p
	}
	return listed(errs)
}
