package logs

import "github.com/fsnotify/fsnotify"

// inotify watches single files through the host's file events.
type inotify struct{ watcher *fsnotify.Watcher }

func newInotify() (growth, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return inotify{w}, nil
}

func (i inotify) arm(path string) error { return i.watcher.Add(path) }

// disarm may find nothing: the watch of a removed file is gone by itself.
func (i inotify) disarm(path string) { _ = i.watcher.Remove(path) }

func (i inotify) events() <-chan fsnotify.Event { return i.watcher.Events }
func (i inotify) errors() <-chan error          { return i.watcher.Errors }
func (i inotify) close() error                  { return i.watcher.Close() }
