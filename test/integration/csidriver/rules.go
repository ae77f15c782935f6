package csidriver

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// ledger knows what the agent was told about each volume, and by that what it
// may ask next.
type ledger struct {
	has            map[Capability]bool
	secrets        map[Op]map[string]string
	publishContext map[string]string

	mu      sync.Mutex
	volumes map[string]*known
	flying  map[string]flight // by volume
}

// known is one volume, by what was answered: work whose answer the agent did
// not get has to be asked for again.
type known struct {
	staging   string            // empty: it was never tried, or is undone
	stagedAs  string            // Call.Fixed
	staged    bool              // the agent was told that it worked
	published map[string]string // Call.Fixed by target; tried, and not undone
}

type flight struct {
	op     Op
	number int
	ctx    context.Context //nolint:containedctx // tells whether the caller still waits
}

type violation struct {
	code codes.Code
	text string
}

func newLedger(has map[Capability]bool, secrets map[Op]map[string]string, publishContext map[string]string) *ledger {
	return &ledger{
		has: has, secrets: secrets, publishContext: publishContext,
		volumes: map[string]*known{}, flying: map[string]flight{},
	}
}

// replay brings the ledger to where an earlier driver's ended.
func (l *ledger) replay(calls []Call) {
	for _, c := range calls {
		if c.Op.changes() && len(c.Violations) == 0 {
			l.note(c)
			l.finish(c)
		}
	}
}

// arguments are what the rules read of a request.
type arguments struct {
	capability *csi.VolumeCapability
	secrets    map[string]string
	publish    map[string]string
}

// begin checks a call against all that went before, and notes that it is under way.
func (l *ledger) begin(ctx context.Context, c Call, args arguments) []violation {
	if !c.Op.changes() {
		return l.inspects(c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found := slices.Concat(l.fields(c), l.brings(c, args))
	if other, ok := l.flying[c.Volume]; ok && other.ctx.Err() == nil {
		return append(found, violation{codes.Aborted, fmt.Sprintf("%s of the volume is under way", other.op)})
	}
	found = append(found, l.order(c)...)
	if len(found) == 0 {
		l.flying[c.Volume] = flight{c.Op, c.Number, ctx}
		l.note(c)
	}
	return found
}

// end notes how a call that was begun without violations ended.
func (l *ledger) end(c Call) {
	if !c.Op.changes() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flying[c.Volume].number == c.Number {
		delete(l.flying, c.Volume)
	}
	l.finish(c)
}

func (l *ledger) inspects(c Call) []violation {
	needs := map[Op]Capability{Stats: VolumeStats, Health: VolumeHealth}
	if need, ok := needs[c.Op]; ok && !l.has[need] {
		return []violation{{codes.Unimplemented, "the driver has no such capability"}}
	}
	if c.Op == Stats && (c.Volume == "" || c.Target == "") {
		return []violation{{codes.InvalidArgument, "volume_id or volume_path is missing"}}
	}
	return nil
}

// fields are what a call must have to be one at all.
func (l *ledger) fields(c Call) (found []violation) {
	need := func(what, value string) {
		if value == "" {
			found = append(found, violation{codes.InvalidArgument, what + " is missing"})
		} else if what != "volume_id" && !filepath.IsAbs(value) {
			found = append(found, violation{codes.InvalidArgument, fmt.Sprintf("%s %q is not absolute", what, value)})
		}
	}
	need("volume_id", c.Volume)
	switch c.Op {
	case Stage, Unstage:
		need("staging_target_path", c.Staging)
		if !l.has[StageUnstage] {
			found = append(found, violation{codes.Unimplemented, "the driver does not stage"})
		}
	case Publish:
		need("target_path", c.Target)
		if l.has[StageUnstage] && !c.inline() {
			need("staging_target_path", c.Staging)
		}
	case Unpublish:
		need("target_path", c.Target)
	case Expand:
		need("volume_path", c.Target)
		if !l.has[ExpandVolume] {
			found = append(found, violation{codes.Unimplemented, "the driver does not expand"})
		}
	case Stats, Health, Info:
	}
	return found
}

// brings checks what stage, publish and expand must carry.
func (l *ledger) brings(c Call, args arguments) (found []violation) {
	say := func(format string, values ...any) {
		found = append(found, violation{codes.InvalidArgument, fmt.Sprintf(format, values...)})
	}
	for key, want := range l.secrets[c.Op] {
		if args.secrets[key] != want {
			say("the secret %q is missing or another", key)
		}
	}
	if c.Op != Stage && c.Op != Publish {
		return found
	}
	if l.publishContext != nil && !c.inline() && !maps.Equal(l.publishContext, args.publish) {
		say("publish_context is %v, not %v", args.publish, l.publishContext)
	}
	if args.capability == nil {
		say("volume_capability is missing")
		return found
	}
	mode := args.capability.GetAccessMode().GetMode()
	switch {
	case args.capability.GetAccessType() == nil:
		say("the access type is missing")
	case mode == csi.VolumeCapability_AccessMode_UNKNOWN:
		say("the access mode is missing")
	case !l.has[SingleNodeMultiWriter] && (mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER || mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER):
		say("access mode %s needs SINGLE_NODE_MULTI_WRITER", mode)
	}
	if c.Group != "" && !l.has[MountGroup] {
		say("volume_mount_group needs VOLUME_MOUNT_GROUP")
	}
	return found
}

// order is what may come after what.
func (l *ledger) order(c Call) (found []violation) {
	say := func(code codes.Code, format string, values ...any) {
		found = append(found, violation{code, fmt.Sprintf(format, values...)})
	}
	v := l.volume(c.Volume)
	switch c.Op {
	case Stage:
		if v.staging != "" && v.staging != c.Staging {
			say(codes.FailedPrecondition, "it is staged at %s, not %s", v.staging, c.Staging)
		} else if v.staging != "" && v.stagedAs != c.Fixed {
			say(codes.AlreadyExists, "it is staged with other arguments: %s, now %s", v.stagedAs, c.Fixed)
		}
		if info, err := os.Stat(c.Staging); err != nil || !info.IsDir() {
			say(codes.InvalidArgument, "staging_target_path %s is no directory", c.Staging)
		}
	case Publish:
		if l.has[StageUnstage] && !c.inline() && (!v.staged || v.staging != c.Staging) {
			say(codes.FailedPrecondition, "it is not staged at %q", c.Staging)
		}
		if as, ok := v.published[c.Target]; ok && as != c.Fixed {
			say(codes.AlreadyExists, "it is published with other arguments: %s, now %s", as, c.Fixed)
		}
		for other, o := range l.volumes {
			if _, taken := o.published[c.Target]; taken && other != c.Volume {
				say(codes.AlreadyExists, "volume %q is published there", other)
			}
		}
		if _, err := os.Stat(filepath.Dir(c.Target)); err != nil {
			say(codes.InvalidArgument, "the folder of target_path %s is not there", c.Target)
		}
	case Unstage:
		if len(v.published) > 0 {
			say(codes.FailedPrecondition, "it is still published at %v", slices.Sorted(maps.Keys(v.published)))
		}
		if v.staging != "" && v.staging != c.Staging {
			say(codes.InvalidArgument, "it is staged at %s, not %s", v.staging, c.Staging)
		}
	case Expand:
		if _, published := v.published[c.Target]; !published && v.staging != c.Target {
			say(codes.NotFound, "it is neither staged nor published at %s", c.Target)
		}
	case Unpublish, Stats, Health, Info:
	}
	return found
}

// note is what is so from the moment that a call began.
func (l *ledger) note(c Call) {
	v := l.volume(c.Volume)
	switch c.Op {
	case Stage:
		v.staging, v.stagedAs = c.Staging, c.Fixed
	case Publish:
		if _, again := v.published[c.Target]; !again {
			v.published[c.Target] = c.Fixed
		}
	case Unstage:
		v.staged = false
	case Unpublish, Expand, Stats, Health, Info:
	}
}

// finish is what is so from the moment that a call was answered.
func (l *ledger) finish(c Call) {
	v := l.volume(c.Volume)
	switch c.Op {
	case Stage:
		v.staged = v.staged || c.OK()
		if c.refused() && !v.staged {
			v.staging, v.stagedAs = "", ""
		}
	case Publish:
		if c.refused() {
			delete(v.published, c.Target)
		}
	case Unpublish:
		if c.OK() {
			delete(v.published, c.Target)
		}
	case Unstage:
		if c.OK() {
			v.staging, v.stagedAs = "", ""
		}
	case Expand, Stats, Health, Info:
	}
}

// refused says that the caller knows for sure that nothing was done.
func (c Call) refused() bool {
	uncertain := []string{"", codes.Canceled.String(), codes.DeadlineExceeded.String(), codes.Unavailable.String(), codes.Aborted.String()}
	return !c.OK() && !c.Done && !slices.Contains(uncertain, c.Code)
}

func (c Call) inline() bool { return c.Context["csi.storage.k8s.io/ephemeral"] == "true" }

func (l *ledger) volume(id string) *known {
	v := l.volumes[id]
	if v == nil {
		v = &known{published: map[string]string{}}
		l.volumes[id] = v
	}
	return v
}

// left are the volumes that are staged or published as far as the agent can tell.
func (l *ledger) left() (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, v := range l.volumes {
		for target := range v.published {
			found = append(found, fmt.Sprintf("volume %q was never unpublished from %s", id, target))
		}
		if v.staging != "" {
			found = append(found, fmt.Sprintf("volume %q was never unstaged from %s", id, v.staging))
		}
	}
	slices.Sort(found)
	return found
}
