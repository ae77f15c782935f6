package csidriver

import (
	"context"
	"path"
	"strings"
	"time"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// intercept stands before each call: the journal, the rules and what the test
// wants to go wrong. The methods of the service do nothing but the work.
func (d *Driver) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, work grpc.UnaryHandler) (any, error) {
	if !strings.HasPrefix(info.FullMethod, "/csi.v1.Node/") {
		return work(ctx, req)
	}
	call, args := describe(Op(path.Base(info.FullMethod)), req)
	call = d.journal.begin(call)
	found := d.ledger.begin(ctx, call, args)
	for _, v := range found {
		call.Violations = append(call.Violations, v.text)
	}
	var answer any
	var err error
	if len(found) > 0 {
		err = status.Error(found[0].code, found[0].text)
	} else {
		answer, err = d.perform(ctx, &call, func() (any, error) { return work(context.WithoutCancel(ctx), req) })
	}
	call.Ended, call.Code, call.Message = time.Now(), status.Code(err).String(), status.Convert(err).Message()
	if len(found) == 0 {
		d.ledger.end(call)
	}
	d.journal.end(call)
	return answer, err
}

// perform does the work. Two calls for one volume, of which the first lost its
// caller, do it one after the other.
func (d *Driver) perform(ctx context.Context, call *Call, work func() (any, error)) (answer any, err error) {
	if err := d.control.pause(ctx, *call, Before); err != nil {
		return nil, err
	}
	if err := d.control.fail(*call); err != nil {
		return nil, err
	}
	func() {
		if call.Op.changes() {
			defer d.volumes.lock(call.Volume)()
		}
		answer, err = work()
	}()
	if err != nil {
		return nil, err
	}
	call.Done = true
	return answer, d.control.pause(ctx, *call, After)
}

// describe reads what a request is about.
func describe(op Op, req any) (Call, arguments) {
	c, args := Call{Op: op, Began: time.Now()}, arguments{}
	if r, ok := req.(interface{ GetVolumeId() string }); ok {
		c.Volume = r.GetVolumeId()
	}
	if r, ok := req.(interface{ GetStagingTargetPath() string }); ok {
		c.Staging = r.GetStagingTargetPath()
	}
	if r, ok := req.(interface{ GetTargetPath() string }); ok {
		c.Target = r.GetTargetPath()
	}
	if r, ok := req.(interface{ GetVolumePath() string }); ok {
		c.Target = r.GetVolumePath()
	}
	if r, ok := req.(interface{ GetSecrets() map[string]string }); ok {
		args.secrets = r.GetSecrets()
	}
	if r, ok := req.(interface{ GetPublishContext() map[string]string }); ok {
		args.publish = r.GetPublishContext()
	}
	if r, ok := req.(interface{ GetVolumeContext() map[string]string }); ok {
		c.Context = r.GetVolumeContext()
	}
	if r, ok := req.(interface{ GetCapacityRange() *csi.CapacityRange }); ok {
		c.Required = r.GetCapacityRange().GetRequiredBytes()
	}
	if r, ok := req.(interface {
		GetVolumeCapability() *csi.VolumeCapability
	}); ok {
		args.capability = r.GetVolumeCapability()
		c.Group = args.capability.GetMount().GetVolumeMountGroup()
		c.Flags = args.capability.GetMount().GetMountFlags()
	}
	c.Fixed = fixed(req)
	return c, args
}

// fixed is what must not change from call to call: all but secrets, and tokens
// and the like, which are renewed.
func fixed(req any) string {
	message, ok := req.(proto.Message)
	if !ok {
		return ""
	}
	message = proto.Clone(message)
	switch r := message.(type) {
	case *csi.NodeStageVolumeRequest:
		r.Secrets, r.VolumeContext = nil, lasting(r.GetVolumeContext())
	case *csi.NodePublishVolumeRequest:
		r.Secrets, r.VolumeContext = nil, lasting(r.GetVolumeContext())
	default:
		return ""
	}
	text, err := protojson.Marshal(message)
	if err != nil {
		return err.Error()
	}
	// protojson puts in spaces at random, on purpose.
	return strings.ReplaceAll(string(text), " ", "")
}

func lasting(volumeContext map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range volumeContext {
		if key != "csi.storage.k8s.io/serviceAccount.tokens" {
			kept[key] = value
		}
	}
	return kept
}
