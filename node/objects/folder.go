package objects

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/manifests"
	"nodekit.dev/internal/tasks"
)

// Folder is a [Store] that is filled from a directory of manifests: ConfigMaps
// and Secrets as YAML or JSON, several in a file if need be. Changes of the
// directory show within moments. Use [NewFolder].
//
// A file that can not be used leaves what it held before; of two files that
// name one object the first by file name wins. A directory that is not there
// has no objects; one that can not be read changes nothing.
type Folder struct {
	*Store
	path   string
	period time.Duration
	log    *slog.Logger

	good   map[string]contents // by path: what was last understood
	failed map[string]string   // by path: the problem that the log has
}

// contents are the objects of one file.
type contents struct {
	secrets    []*corev1.Secret
	configMaps []*corev1.ConfigMap
}

// folderPeriod is how often the directory is read whatever events said, as the
// stock fileCheckFrequency.
const folderPeriod = 20 * time.Second

// NewFolder checks that the path, of a directory or of a single file, is
// absolute. Getters wait until Run has read it once.
func NewFolder(path string, log *slog.Logger) (*Folder, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("objects: path %q of the folder must be absolute", path)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Folder{
		Store: NewStore(), path: filepath.Clean(path), period: folderPeriod, log: log,
		good: map[string]contents{}, failed: map[string]string{},
	}, nil
}

// Run reads the directory whenever it changed, and hands out changes, until ctx
// ends; it returns its error.
func (f *Folder) Run(ctx context.Context) error {
	group := tasks.New(ctx)
	group.Go("objects-folder", func(ctx context.Context) error {
		f.read(ctx)
		return nil
	})
	err := f.told.Run(group.Context())
	group.Stop()
	return errors.Join(group.Wait(), err)
}

func (f *Folder) read(ctx context.Context) {
	w := manifests.NewWatch(f.path, f.log)
	defer w.Close()
	for {
		w.Follow()
		f.scan()
		if w.Wait(ctx, f.period) != nil {
			return
		}
	}
}

// scan reads all files and puts what is good into the store.
func (f *Folder) scan() {
	paths, err := manifests.List(f.path)
	f.note(f.path, err)
	if err != nil {
		return
	}
	maps.DeleteFunc(f.good, func(path string, _ contents) bool { return !slices.Contains(paths, path) })
	maps.DeleteFunc(f.failed, func(path, _ string) bool { return path != f.path && !slices.Contains(paths, path) })
	for _, path := range paths {
		f.scanFile(path)
	}
	secrets, configMaps := f.merge(paths)
	if err := f.Set(secrets, configMaps); err != nil { // each was checked
		f.log.Error("the folder's objects can not be used", "path", f.path, "err", err)
	}
}

func (f *Folder) scanFile(path string) {
	data, err := manifests.Read(path)
	if errors.Is(err, os.ErrNotExist) && !manifests.Dangling(path) {
		delete(f.good, path) // removed since it was listed
		return
	}
	var found contents
	if err == nil {
		found, err = decodeObjects(data)
	}
	f.note(path, err)
	if err == nil {
		f.good[path] = found
	}
}

// note logs a problem of a file once, and its end.
func (f *Folder) note(path string, err error) {
	old, had := f.failed[path]
	switch {
	case err == nil && had:
		delete(f.failed, path)
		f.log.Info("objects can be read again", "path", path)
	case err != nil && old != err.Error():
		f.failed[path] = err.Error()
		f.log.Error("objects can not be used; what was there before stays", "path", path, "err", err)
	}
}

// merge puts the files together, in their order.
func (f *Folder) merge(paths []string) (secrets []*corev1.Secret, configMaps []*corev1.ConfigMap) {
	taken := map[string]string{}
	first := func(path, kind, namespace, name string) bool {
		id := kind + " " + namespace + "/" + name
		by, known := taken[id]
		if known {
			f.note(path, fmt.Errorf("%s is in %s too, which wins: remove one", id, by))
			return false
		}
		taken[id] = path
		return true
	}
	for _, path := range paths {
		for _, s := range f.good[path].secrets {
			if first(path, KindSecret, s.Namespace, s.Name) {
				secrets = append(secrets, s)
			}
		}
		for _, m := range f.good[path].configMaps {
			if first(path, KindConfigMap, m.Namespace, m.Name) {
				configMaps = append(configMaps, m)
			}
		}
	}
	return secrets, configMaps
}
