package csidriver

import (
	"context"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// nodeService does the work of the calls. The rules have been seen to.
type nodeService struct {
	csi.UnimplementedNodeServer
	driver *Driver
}

func (n nodeService) NodeStageVolume(ctx context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	return &csi.NodeStageVolumeResponse{}, failed(n.driver.volumes.stage(ctx, req.GetVolumeId(), req.GetStagingTargetPath(), req.GetVolumeCapability()))
}

func (n nodeService) NodePublishVolume(ctx context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	inline := req.GetVolumeContext()["csi.storage.k8s.io/ephemeral"] == "true"
	return &csi.NodePublishVolumeResponse{}, failed(n.driver.volumes.publish(ctx, publication{
		id: req.GetVolumeId(), staging: req.GetStagingTargetPath(), target: req.GetTargetPath(),
		capability: req.GetVolumeCapability(), readOnly: req.GetReadonly(), inline: inline, stages: n.driver.has[StageUnstage],
	}))
}

func (n nodeService) NodeUnpublishVolume(_ context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, failed(n.driver.volumes.unpublish(req.GetVolumeId(), req.GetTargetPath()))
}

func (n nodeService) NodeUnstageVolume(ctx context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, failed(n.driver.volumes.unstage(ctx, req.GetVolumeId(), req.GetStagingTargetPath()))
}

func (n nodeService) NodeExpandVolume(ctx context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	size, err := n.driver.volumes.grow(ctx, req.GetVolumeId(), req.GetVolumePath(), req.GetCapacityRange().GetRequiredBytes())
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, failed(err)
}

func (n nodeService) NodeGetVolumeStats(_ context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	usage, err := n.driver.volumes.usage(req.GetVolumeId(), req.GetVolumePath())
	if err != nil {
		return nil, failed(err)
	}
	reply := &csi.NodeGetVolumeStatsResponse{Usage: usage}
	if abnormal, message := n.driver.volumes.condition(req.GetVolumeId()); n.driver.has[Condition] {
		reply.ProtoReflect().SetUnknown(condition(abnormal, message))
	}
	return reply, nil
}

// condition is the VolumeCondition of CSI 1.3 to 1.12, which today's package has
// no message for: field 2, of a bool and a string.
func condition(abnormal bool, message string) []byte {
	var inner []byte
	inner = protowire.AppendTag(inner, 1, protowire.VarintType)
	inner = protowire.AppendVarint(inner, protowire.EncodeBool(abnormal))
	inner = protowire.AppendTag(inner, 2, protowire.BytesType)
	inner = protowire.AppendString(inner, message)
	return protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), inner)
}

func (n nodeService) NodeGetVolumeHealth(_ context.Context, req *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	health := &csi.VolumeHealth{VolumeId: req.GetVolumeId()}
	if abnormal, message := n.driver.volumes.condition(req.GetVolumeId()); abnormal {
		health.HealthStatuses = []*csi.VolumeHealth_VolumeHealthEntry{{
			Status: csi.VolumeHealthErrorType_DEGRADED, Reason: "TestSaysSo", Message: message,
		}}
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}

func (n nodeService) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	reply := &csi.NodeGetCapabilitiesResponse{}
	for _, c := range n.driver.capabilitiesSorted() {
		reply.Capabilities = append(reply.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_Type(c)}},
		})
	}
	return reply, nil
}

func (n nodeService) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	reply := &csi.NodeGetInfoResponse{NodeId: n.driver.cfg.NodeID, MaxVolumesPerNode: n.driver.limit()}
	if len(n.driver.cfg.Topology) > 0 {
		reply.AccessibleTopology = &csi.Topology{Segments: n.driver.cfg.Topology}
	}
	return reply, nil
}

// failed gives an error a code, unless it has one.
func failed(err error) error {
	if err == nil || status.Code(err) != codes.Unknown {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}
