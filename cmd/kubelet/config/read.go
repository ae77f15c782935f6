package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// list is several errors in one line, as the stock kubelet writes them.
type list []error

// listed joins errors; nil where there are none.
func listed(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return list(errs)
}

func (l list) Error() string {
	if len(l) == 1 {
		return l[0].Error()
	}
	texts := make([]string, len(l))
	for i, err := range l {
		texts[i] = err.Error()
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (l list) Unwrap() []error { return l }

// readAll reads the main file and the drop-ins, lowest layer first.
func readAll(files Files) (docs []document, ignored []string, err error) {
	if files.Main != "" {
		d, err := readFile(files.Main)
		if err != nil {
			return nil, nil, fmt.Errorf("failed to load kubelet config file %s: %w", files.Main, err)
		}
		docs = append(docs, d...)
	}
	names, ignored, err := dropIns(files.DropInDir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		d, err := readFile(name)
		if err != nil {
			return nil, nil, fmt.Errorf("failed to load kubelet drop-in config file %s: %w", name, err)
		}
		docs = append(docs, d...)
	}
	return docs, ignored, nil
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
	if len(data) == 0 {
		// A power loss leaves such files. The defaults instead of what the node was
		// given would be another node: other addresses, authorities and cgroups.
		return nil, errors.New("it was empty; write it again, or leave the flag out to have the defaults")
	}
	return parse(name, data)
}

// dropIns lists the *.conf files below dir as the stock kubelet walks them:
// the entries of each folder by name, a folder's files where its name stands.
func dropIns(dir string) (names, ignored []string, err error) {
	if dir == "" {
		return nil, nil, nil
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case filepath.Ext(path) == ".conf":
			names = append(names, path)
		default:
			ignored = append(ignored, path)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to read the drop-in folder %s: %w", dir, err)
	}
	return names, ignored, nil
}
