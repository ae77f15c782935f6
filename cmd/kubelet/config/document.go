package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// document is one YAML document of one file, with its lines.
type document struct {
	file       string
	root       *yaml.Node // a mapping
	apiVersion string
	kind       string
}

// parse splits a file into its documents. JSON is YAML, so both are read.
func parse(file string, data []byte) ([]document, error) {
	var docs []document
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		doc, err := newDocument(file, &n)
		if err != nil {
			return nil, err
		}
		if doc != nil {
			docs = append(docs, *doc)
		}
	}
}

func newDocument(file string, n *yaml.Node) (*document, error) {
	if len(n.Content) == 0 || n.Content[0].Tag == "!!null" {
		return nil, nil //nolint:nilnil // an empty document between two separators
	}
	root := n.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: want a mapping with apiVersion and kind", file, root.Line)
	}
	doc := &document{file: file, root: root, apiVersion: scalar(root, "apiVersion"), kind: scalar(root, "kind")}
	if doc.apiVersion == "" || doc.kind == "" {
		return nil, fmt.Errorf("%s:%d: apiVersion and kind must be set, for instance apiVersion: %s and kind: %s", file, root.Line, kubeletAPIVersion, kubeletKind)
	}
	return doc, nil
}

// scalar returns the last value of a key of a mapping; "" where it is not a scalar.
func scalar(mapping *yaml.Node, key string) string {
	value := ""
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key && mapping.Content[i+1].Kind == yaml.ScalarNode {
			value = mapping.Content[i+1].Value
		}
	}
	return value
}

// plain turns a node into maps, lists and scalars. Of a key that is written
// twice the last one counts, as in the stock kubelet's lenient reader.
func plain(n *yaml.Node) (any, error) {
	dropDuplicates(n, map[*yaml.Node]bool{})
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

func dropDuplicates(n *yaml.Node, seen map[*yaml.Node]bool) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	if n.Kind == yaml.MappingNode {
		n.Content = lastOfEachKey(n.Content)
	}
	for _, c := range n.Content {
		dropDuplicates(c, seen)
	}
	dropDuplicates(n.Alias, seen)
}

func lastOfEachKey(pairs []*yaml.Node) []*yaml.Node {
	last := map[string]int{}
	for i := 0; i+1 < len(pairs); i += 2 {
		last[pairs[i].Value] = i
	}
	var kept []*yaml.Node
	for i := 0; i+1 < len(pairs); i += 2 {
		if last[pairs[i].Value] == i || pairs[i].Tag == "!!merge" {
			kept = append(kept, pairs[i], pairs[i+1])
		}
	}
	return kept
}
