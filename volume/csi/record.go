package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"nodekit.dev/internal/atomicfile"
)

// record is a vol_data.json. The keys without a dot are the stock kubelet's,
// which ignores the others.
type record map[string]string

const (
	keyName       = "specVolID"
	keyHandle     = "volumeHandle"
	keyDriver     = "driverName"
	keyNode       = "nodeName"
	keyAttachment = "attachmentID"
	keyMode       = "volumeLifecycleMode"
	keyLabel      = "seLinuxMountContext"

	keyState     = "nodekit.dev/state"
	keyIsMount   = "nodekit.dev/is-mount" // the driver published a mount point
	keyRepublish = "nodekit.dev/republish"
	keyAttached  = "nodekit.dev/attached"
	keySize      = "nodekit.dev/size" // bytes that this node grew it to
	yes          = "true"
)

// The states. Those that a reboot undoes are followed by the ID of the boot.
const (
	preparing   = "preparing" // NodePublishVolume was not called yet
	publishing  = "publishing"
	published   = "published"
	unpublished = "unpublished"
	isStaging   = "staging"
	isStaged    = "staged"
)

func (r record) key() volumeKey { return volumeKey{r[keyDriver], r[keyHandle]} }

// state is without the boot.
func (r record) state() string {
	state, _, _ := strings.Cut(r[keyState], " ")
	return state
}

// since says whether the state was reached in this boot.
func (r record) since(boot string) bool {
	_, at, _ := strings.Cut(r[keyState], " ")
	return at == boot
}

// with is a copy with further values; empty ones are left out.
func (r record) with(pairs ...string) record {
	out := maps.Clone(r)
	if out == nil {
		out = record{}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
		if pairs[i+1] == "" {
			delete(out, pairs[i])
		}
	}
	return out
}

// errDamaged says that a record can not be read as one.
var errDamaged = errors.New("the record of a CSI volume is damaged")

// readRecord reads one; ok is false where there is none.
func readRecord(path string) (r record, ok bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err := json.Unmarshal(data, &r); err != nil || r[keyDriver] == "" || r[keyHandle] == "" || strings.ContainsAny(r[keyDriver], "/\x00") {
		return nil, false, fmt.Errorf("%w: %s", errDamaged, path)
	}
	return r, true, nil
}

func (r record) write(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o644)
}

// bootID tells one boot of the machine from the next, which undoes all mounts.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}
