package userns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"nodekit.dev/internal/atomicfile"
)

// noteFile is the stock kubelet's name for it.
const noteFile = "userns"

// note is the stock kubelet's format.
type note struct {
	UIDs []mapping `json:"uidMappings"`
	GIDs []mapping `json:"gidMappings"`
}

type mapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

// errNoNote says that the pod has no range.
var errNoNote = errors.New("no user namespace is noted")

func readNote(podDir string) (IDs, error) {
	path := filepath.Join(podDir, noteFile)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return IDs{}, errNoNote
	case err != nil:
		return IDs{}, err
	}
	var n note
	if err := json.Unmarshal(data, &n); err != nil {
		return IDs{}, fmt.Errorf("%s: %w", path, err)
	}
	if len(n.UIDs) != 1 || len(n.GIDs) != 1 || n.UIDs[0] != n.GIDs[0] || n.UIDs[0].ContainerID != 0 || n.UIDs[0].Length == 0 {
		return IDs{}, fmt.Errorf("%s: want one mapping, from ID 0 on, the same for users and groups", path)
	}
	return IDs{First: n.UIDs[0].HostID, Length: n.UIDs[0].Length}, nil
}

func writeNote(podDir string, ids IDs) error {
	all := []mapping{{HostID: ids.First, Length: ids.Length}}
	data, err := json.Marshal(note{UIDs: all, GIDs: all})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(podDir, 0o750); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(podDir, noteFile), data, 0o600)
}

func removeNote(podDir string) error {
	err := os.Remove(filepath.Join(podDir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
