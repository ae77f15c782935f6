package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

const (
	kubeletAPIVersion = "kubelet.config.k8s.io/v1beta1"
	kubeletKind       = "KubeletConfiguration"
)

//go:embed defaults.yaml
var defaultsYAML []byte

// KubeletConfiguration is the stock type, under the name users know.
type KubeletConfiguration = kubeletv1beta1.KubeletConfiguration

// Files says where configuration is read from.
type Files struct {
	// Main is the file of --config; empty: none.
	Main string
	// DropInDir is the folder of --config-dir; its *.conf files are merged over
	// the main file in the order of their names. Empty: none.
	DropInDir string
	// Strict turns unknown and duplicate fields into an error.
	Strict bool
	// Override is the topmost layer, in the shape of the JSON document: what
	// flags set.
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
	vendor   map[reflect.Type]any
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
	docs, err := readAll(files)
	if err != nil {
		return nil, err
	}
	out := &Loaded{Set: map[string]any{}, vendor: map[reflect.Type]any{}}
	for _, doc := range docs {
		if err := l.take(doc, out); err != nil {
			return nil, err
		}
	}
	if err := out.refuse(files.Strict); err != nil {
		return nil, err
	}
	merge(out.Set, files.Override)
	out.Kubelet, err = decodeKubelet(out.Set)
	return out, err
}

// take merges one document into what is set, or decodes a vendor's kind.
func (l *Loader) take(doc document, out *Loaded) error {
	if doc.apiVersion == kubeletAPIVersion && doc.kind == kubeletKind {
		out.Problems = append(out.Problems, checkFields(doc, reflect.TypeFor[KubeletConfiguration]())...)
		v, err := plain(doc.root)
		if err != nil {
			return fmt.Errorf("%s: %w", doc.file, err)
		}
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: keys must be strings", doc.file)
		}
		if _, err := decodeKubelet(m); err != nil {
			return fmt.Errorf("failed to load kubelet config file %s: %w", doc.file, err)
		}
		resolvePaths(m, doc.file)
		merge(out.Set, m)
		return nil
	}
	for _, k := range l.kinds {
		if k.apiVersion == doc.apiVersion && k.kind == doc.kind {
			return takeVendor(doc, k, out)
		}
	}
	return fmt.Errorf("%s:%d: no kind %q is registered for version %q; known: %s", doc.file, doc.root.Line, doc.kind, doc.apiVersion, l.known())
}

// resolvePaths makes staticPodPath, when it is relative, start at the folder of
// the file that it stands in, as in the stock kubelet.
func resolvePaths(m map[string]any, file string) {
	path, isString := m["staticPodPath"].(string)
	if isString && path != "" && !filepath.IsAbs(path) {
		m["staticPodPath"] = filepath.Join(filepath.Dir(file), path)
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
	typ := k.typ
	problems := withoutTypeMeta(checkFields(doc, typ))
	if len(problems) > 0 {
		return joinProblems(problems)
	}
	v, err := plain(doc.root)
	if err != nil {
		return fmt.Errorf("%s: %w", doc.file, err)
	}
	target, ok := out.vendor[typ]
	if !ok {
		target = reflect.New(typ).Interface()
	}
	if err := decode(v, target); err != nil {
		return fmt.Errorf("%s: %s: %w", doc.file, k.kind, err)
	}
	out.vendor[typ] = target
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
	return joinProblems(out.Problems)
}

func joinProblems(problems []Problem) error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

func readAll(files Files) ([]document, error) {
	var docs []document
	if files.Main != "" {
		d, err := readFile(files.Main)
		if err != nil {
			return nil, fmt.Errorf("failed to load kubelet config file %s: %w", files.Main, err)
		}
		docs = append(docs, d...)
	}
	names, err := dropIns(files.DropInDir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		d, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("failed to load kubelet drop-in config file %s: %w", name, err)
		}
		docs = append(docs, d...)
	}
	return docs, nil
}

func readFile(name string) ([]document, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parse(name, data)
}

// dropIns lists the *.conf files below dir, sorted by path, as the stock kubelet does.
func dropIns(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	var names []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".conf" {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("failed to read the drop-in folder %s: %w", dir, err)
	}
	sort.Strings(names)
	return names, nil
}

// decodeKubelet lays the user's fields over the defaults.
func decodeKubelet(user map[string]any) (KubeletConfiguration, error) {
	var kc KubeletConfiguration
	layers, err := defaults()
	if err != nil {
		return kc, err
	}
	// The stock kubelet drops its default thresholds as soon as one is given.
	if _, set := user["evictionHard"]; set && user["mergeDefaultEvictionSettings"] != true {
		delete(layers, "evictionHard")
	}
	merge(layers, user)
	return kc, decode(layers, &kc)
}

// defaults is the lowest layer.
func defaults() (map[string]any, error) {
	docs, err := parse("defaults.yaml", defaultsYAML)
	if err != nil {
		return nil, err
	}
	v, err := plain(docs[0].root)
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

// Default is the configuration of a kubelet without any file or flag.
func Default() (KubeletConfiguration, error) { return decodeKubelet(nil) }

func decode(v, into any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return json.NewDecoder(bytes.NewReader(data)).Decode(into)
}

// merge lays src over dst: maps by key, everything else replaced. A null means
// that nothing was said.
func merge(dst, src map[string]any) {
	for k, v := range src {
		if v == nil {
			continue
		}
		from, isMap := v.(map[string]any)
		into, wasMap := dst[k].(map[string]any)
		if isMap && wasMap {
			merge(into, from)
			continue
		}
		if isMap {
			copied := map[string]any{}
			merge(copied, from)
			v = copied
		}
		dst[k] = v
	}
}
