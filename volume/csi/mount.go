package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"

	"nodekit.dev/volume"
)

// mounting is one Mount: what is known before the first call is made.
type mounting struct {
	described
	uid    string
	driver *driver
	policy policy
	place  place
	stage  staging // its path is empty where the driver does not stage
	label  string
	group  *int64 // that the driver sees to

	context      map[string]string // of NodePublishVolume
	stageSecret  map[string]string
	nodeSecret   map[string]string
	expandSecret map[string]string
	source       volume.Source
}

// Mount implements [volume.Plugin]: it stages the volume, unless that was done
// for another pod, publishes it, and grows it where the claim is smaller than its
// volume (in this order since k/k#108693). Of what it calls, all is called again
// that a crash cut short.
func (p *Plugin) Mount(ctx context.Context, req volume.MountRequest) (volume.MountResult, error) {
	m, err := p.prepare(ctx, req)
	if err != nil {
		return volume.MountResult{}, err
	}
	release, err := p.locks.take(ctx, m.volumeKey)
	if err != nil {
		return volume.MountResult{}, fmt.Errorf("waiting for other calls for volume %s: %w", m.handle, err)
	}
	defer release()
	if err := p.mount(ctx, m); err != nil {
		return volume.MountResult{}, err
	}
	result := volume.MountResult{HostPath: m.place.target, SetOwner: setOwner(m.described, m.driver.Capabilities, m.policy.fsGroup)}
	if m.policy.republish {
		result.RefreshAt = time.Now().Add(p.cfg.Republish)
	}
	return result, nil
}

// prepare reads all that comes from elsewhere than the driver, so that nobody
// waits for the volume's lock meanwhile.
func (p *Plugin) prepare(ctx context.Context, req volume.MountRequest) (*mounting, error) {
	uid := string(req.Pod.UID)
	v, err := describe(uid, req.Pod.Namespace, req.Source)
	if err != nil {
		return nil, err
	}
	m := &mounting{described: v, uid: uid, source: req.Source, place: p.layout.place(uid, v.name, req.Dir, req.MetaDir, v.block)}
	if m.driver, err = p.driver(v.driver, uid); err != nil {
		return nil, err
	}
	if m.policy, err = p.policyOf(ctx, v.driver); err != nil {
		return nil, err
	}
	if err := m.policy.allows(v.driver, v.mode); err != nil {
		return nil, err
	}
	if m.driver.Capabilities.Stage && !v.ephemeral() {
		m.stage = p.layout.staging(v)
	}
	m.group = mountGroup(m.driver.Capabilities, req.FSGroup)
	if m.policy.seLinux {
		m.label = req.SELinuxLabel
	}
	return m, p.contents(ctx, m, req)
}

// contents reads secrets and tokens.
func (p *Plugin) contents(ctx context.Context, m *mounting, req volume.MountRequest) (err error) {
	if m.stageSecret, err = p.secret(ctx, m.uid, m.described.stageSecret); err != nil {
		return err
	}
	if m.nodeSecret, err = p.secret(ctx, m.uid, m.described.nodeSecret); err != nil {
		return err
	}
	if m.grows() {
		if m.expandSecret, err = p.secret(ctx, m.uid, m.described.expandSecret); err != nil {
			return err
		}
	}
	m.context = volumeContext(m.described, m.policy, req.Pod)
	tokens, err := p.tokenText(ctx, m.policy, req.Pod)
	if err != nil || tokens == "" {
		return err
	}
	into := &m.context
	if m.policy.tokensInSecret {
		into = &m.nodeSecret
	}
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[tokensKey] = tokens
	return nil
}

// mount does what is left to do. The lock of the volume is held.
func (p *Plugin) mount(ctx context.Context, m *mounting) error {
	boot, err := p.boot()
	if err != nil {
		return err
	}
	noted, ok, err := readRecord(m.place.record)
	if err != nil {
		p.log.WarnContext(ctx, "what was known of a CSI volume is not readable; it is published anew", "uid", m.uid, "volume", m.name, "err", err)
	}
	there := false
	if ok && noted.key() == m.volumeKey {
		if there, err = m.place.isPublished(noted, boot); err != nil {
			return err
		}
		if there && !m.policy.republish {
			return nil
		}
		m.recall(noted)
	} else {
		noted = nil
	}
	if there { // published again: until that succeeded, it is as it was
		return p.publish(ctx, m)
	}
	return p.mountAnew(ctx, m, m.record(p.cfg.NodeName, noted), boot)
}

// mountAnew goes all the way.
func (p *Plugin) mountAnew(ctx context.Context, m *mounting, r record, boot string) error {
	if m.block {
		if err := link(m.place.target, m.place.dir); err != nil {
			return err
		}
	}
	if m.stage.path != "" {
		if err := p.stageFor(ctx, m, r, boot); err != nil {
			return err
		}
	}
	if err := r.with(keyState, publishing).write(m.place.record); err != nil {
		return err
	}
	if err := p.publish(ctx, m); err != nil {
		return err
	}
	if err := p.growMounting(ctx, m); err != nil {
		return err
	}
	isMount, err := isMountPoint(m.place.target)
	if err != nil {
		return err
	}
	mark := ""
	if isMount {
		mark = yes
	}
	if now, ok, err := readRecord(m.place.record); err == nil && ok {
		r = now // growMounting noted the size
	}
	return r.with(keyState, published+" "+boot, keyIsMount, mark).write(m.place.record)
}

// stageFor stages the volume for a pod whose directory says that it uses it from
// now on.
func (p *Plugin) stageFor(ctx context.Context, m *mounting, r record, boot string) error {
	state := publishing // a publish that may have happened is not forgotten
	if old, ok, err := readRecord(m.place.record); err == nil && (!ok || old.state() == preparing || old.state() == unpublished) {
		state = preparing
	}
	if err := r.with(keyState, state).write(m.place.record); err != nil {
		return err
	}
	return p.stageVolume(ctx, m, boot)
}

// record is what is noted of the volume, in the stock kubelet's words and ours.
func (m *mounting) record(node string, old record) record {
	republish, publishContext := "", ""
	if m.policy.republish {
		republish = yes
	}
	if len(m.published) > 0 && m.policy.republish {
		if text, err := json.Marshal(m.published); err == nil {
			publishContext = string(text)
		}
	}
	attachment := m.attachment
	if attachment == "" {
		attachment = old[keyAttachment]
	}
	return record{}.with(
		keyName, m.name, keyHandle, m.handle, keyDriver, m.volumeKey.driver, keyNode, node, keyMode, string(m.mode),
		keyAttachment, attachment, keyLabel, m.label, keyRepublish, republish, keyContext, publishContext, keySize, m.sizeKnown(old),
	)
}

// sizeKnown is what this node knows the size of a volume to be that is not staged.
func (m *mounting) sizeKnown(old record) string {
	if n := max(m.claimSize, size(old)); n > 0 && m.stage.path == "" {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

const keyContext = "nodekit.dev/publish-context"

// recall fills in what only the first Mount was told.
func (m *mounting) recall(r record) {
	if m.published == nil && r[keyContext] != "" {
		_ = json.Unmarshal([]byte(r[keyContext]), &m.published) // we wrote it; damaged, the driver says what it misses
	}
}

// isPublished says whether the volume is where its record says.
func (pl place) isPublished(r record, boot string) (bool, error) {
	switch r.state() {
	case published:
		if !r.since(boot) {
			return false, nil
		}
		if r[keyIsMount] != yes {
			_, err := os.Lstat(pl.target)
			return err == nil, nil
		}
	case "": // the stock kubelet's
	default:
		return false, nil
	}
	return isMountPoint(pl.target)
}

// stageVolume stages it, unless that was done. The lock is held.
func (p *Plugin) stageVolume(ctx context.Context, m *mounting, boot string) error {
	noted, ok, err := readRecord(m.stage.record)
	if err != nil {
		p.log.WarnContext(ctx, "what was known of a staged CSI volume is not readable; it is staged anew", "volume", m.name, "err", err)
	}
	if noted.key() != m.volumeKey {
		noted = nil
	}
	if ok && noted.state() == isStaged && noted.since(boot) {
		if noted[keyLabel] != m.label {
			return fmt.Errorf("conflicting SELinux labels of volume %s: %q and %q", m.name, noted[keyLabel], m.label)
		}
		return nil
	}
	r := m.stageRecord(p.cfg.NodeName, noted)
	if err := r.with(keyState, isStaging).write(m.stage.record); err != nil {
		return err
	}
	if err := os.MkdirAll(m.stage.path, dirMode); err != nil {
		return err
	}
	err = p.call(ctx, m.driver, "NodeStageVolume", func(ctx context.Context) error {
		_, err := m.driver.node.NodeStageVolume(ctx, &csipb.NodeStageVolumeRequest{
			VolumeId: m.handle, PublishContext: m.published, StagingTargetPath: m.stage.path,
			VolumeCapability: capability(m.described, m.driver.Capabilities, m.group, m.label),
			Secrets:          m.stageSecret, VolumeContext: m.attributes,
		})
		return err
	})
	if err != nil {
		return err
	}
	return r.with(keyState, isStaged+" "+boot).write(m.stage.record)
}

// stageRecord begins with the size that the claim knows of: it is what this node
// has not grown yet.
func (m *mounting) stageRecord(node string, old record) record {
	attached, known := "", ""
	if m.attached {
		attached = yes
	}
	if n := max(m.claimSize, size(old)); n > 0 {
		known = strconv.FormatInt(n, 10)
	}
	r := record{}.with(keyHandle, m.handle, keyDriver, m.volumeKey.driver, keyLabel, m.label, keyAttached, attached, keySize, known)
	if m.block { // the stock kubelet reads more of it there
		r = r.with(keyName, m.name, keyNode, node, keyAttachment, m.attachment)
	}
	return r
}

// publish calls NodePublishVolume.
func (p *Plugin) publish(ctx context.Context, m *mounting) error {
	if err := os.MkdirAll(filepath.Dir(m.place.target), dirMode); err != nil {
		return err
	}
	return p.call(ctx, m.driver, "NodePublishVolume", func(ctx context.Context) error {
		_, err := m.driver.node.NodePublishVolume(ctx, &csipb.NodePublishVolumeRequest{
			VolumeId: m.handle, PublishContext: m.published, StagingTargetPath: m.stage.path, TargetPath: m.place.target,
			VolumeCapability: capability(m.described, m.driver.Capabilities, m.group, m.label),
			Readonly:         m.readOnly, Secrets: m.nodeSecret, VolumeContext: m.context,
		})
		return err
	})
}

// Mounted implements [volume.Plugin]. It reads the host and asks no driver.
func (p *Plugin) Mounted(_ context.Context, req volume.MountedRequest) (volume.MountedResult, error) {
	place := p.layout.place(req.UID, req.Name(), req.Dir, req.MetaDir, p.layout.isDevice(req.UID, req.Name(), req.Dir))
	r, ok, err := readRecord(place.record)
	if !ok && err == nil && place.block { // perhaps the stock kubelet's, which has it elsewhere
		r, ok, err = readRecord(p.layout.deviceStaging(req.Name()).record)
		r = r.with(keyState, "")
	}
	if err != nil || !ok {
		return volume.MountedResult{}, nil // Mount mends what is damaged
	}
	boot, err := p.boot()
	if err != nil {
		return volume.MountedResult{}, err
	}
	is, err := place.isPublished(r, boot)
	if err != nil || !is {
		return volume.MountedResult{}, err
	}
	inline := req.Volume.CSI
	return volume.MountedResult{
		Mounted: true, HostPath: place.target, Follows: r[keyRepublish] == yes,
		ReadOnly: req.ReadOnly || inline != nil && set(inline.ReadOnly),
	}, nil
}
