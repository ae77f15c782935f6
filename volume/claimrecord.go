package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/internal/atomicfile"
)

// claimRecord says what a volume that names a claim is mounted from. It is
// written before the mount and removed after the unmount, so that containers
// start again, and volumes come off, while the API server is away.
type claimRecord struct {
	Plugin           string                   `json:"plugin"`
	PersistentVolume *corev1.PersistentVolume `json:"persistentVolume"`
	Namespace        string                   `json:"claimNamespace"`
	Claim            string                   `json:"claim"`
	ReadOnly         bool                     `json:"readOnly,omitempty"`
	ClaimSize        int64                    `json:"claimSize,omitempty"`
	Attached         bool                     `json:"attached,omitempty"`
	SELinuxLabel     string                   `json:"seLinuxLabel,omitempty"`
}

func (r claimRecord) source(v corev1.Volume) Source {
	return Source{Volume: v, PersistentVolume: r.PersistentVolume, Claim: Claim{r.Namespace, r.Claim}, ReadOnly: r.ReadOnly, ClaimSize: r.ClaimSize, Attached: r.Attached, SELinuxLabel: r.SELinuxLabel}
}

func (l layout) claims(uid string) string { return filepath.Join(l.pod(uid), "volume-claims") }

func (l layout) claim(uid, volume string) string { return filepath.Join(l.claims(uid), volume) }

// writeClaim notes what v is about to be mounted from.
func (m *Manager) writeClaim(uid string, plugin Plugin, s Source) error {
	data, err := json.Marshal(claimRecord{plugin.Name(), s.PersistentVolume, s.Claim.Namespace, s.Claim.Name, s.ReadOnly, s.ClaimSize, s.Attached, s.SELinuxLabel})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.layout.claims(uid), dirMode); err != nil {
		return err
	}
	return atomicfile.WriteChecked(m.layout.claim(uid, s.Volume.Name), data, 0o600)
}

// readClaim is the record of a volume, if there is one. A damaged one is set
// aside: the next mount writes it anew, and the volume itself is found by its
// directory.
func (m *Manager) readClaim(uid, volume string) (record claimRecord, ok bool, err error) {
	file := m.layout.claim(uid, volume)
	data, err := atomicfile.ReadChecked(file)
	if errors.Is(err, fs.ErrNotExist) {
		return claimRecord{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err == nil && (record.PersistentVolume == nil || checkName("PersistentVolume", record.PersistentVolume.Name) != nil) {
		err = errors.New("it names no PersistentVolume")
	}
	if err == nil {
		return record, true, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return claimRecord{}, false, err
	}
	aside, asideErr := atomicfile.SetAside(file, "damaged")
	m.log.Warn("what a volume was mounted from is not readable", "uid", uid, "volume", volume, "movedTo", aside, "err", err)
	return claimRecord{}, false, asideErr
}

// claimRecords are all records of a pod, by the volumes' names in the pod.
func (m *Manager) claimRecords(uid string) (map[string]claimRecord, error) {
	list, err := entries(m.layout.claims(uid))
	if err != nil {
		return nil, err
	}
	records := map[string]claimRecord{}
	for _, entry := range list {
		name := entry.Name()
		if !entry.Type().IsRegular() || strings.Contains(name, ".") { // half written, or set aside
			continue
		}
		record, ok, err := m.readClaim(uid, name)
		if err != nil {
			return nil, fmt.Errorf("what volume %q is mounted from: %w", name, err)
		}
		if ok {
			records[name] = record
		}
	}
	return records, nil
}

// Recorded lists the volumes of claims that were mounted, or at least tried to,
// and not unmounted, whoever did. It reads the host, never memory.
func (m *Manager) Recorded() ([]Recorded, error) {
	uids, err := dirs(m.layout.pods())
	if err != nil {
		return nil, fmt.Errorf("volumes of claims: %w", err)
	}
	var all []Recorded
	for _, uid := range uids {
		records, err := m.claimRecords(uid)
		if err != nil {
			return nil, fmt.Errorf("volumes of pod %s: %w", uid, err)
		}
		for name, record := range records {
			all = append(all, Recorded{UID: uid, Source: record.source(corev1.Volume{Name: name})})
		}
	}
	return all, nil
}

func (m *Manager) removeClaim(uid, volume string) error {
	if err := os.Remove(m.layout.claim(uid, volume)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
