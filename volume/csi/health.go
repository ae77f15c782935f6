package csi

import (
	"context"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
)

// HealthEntry is one thing that a driver says of a volume's health.
type HealthEntry struct {
	// Status is "Degraded", "Inaccessible" or "DataLoss", as the API has it.
	Status          string
	Reason, Message string
}

// BackendHealth is one thing that a driver says of the storage behind it.
type BackendHealth struct {
	// Status is "StorageDegraded" or "StorageUnreachable".
	Status          string
	Reason, Message string
}

// Health calls NodeGetVolumeHealth, in the way of [Plugin.Stats]. No entry is
// good health.
func (p *Plugin) Health(ctx context.Context, req VolumeRequest) ([]HealthEntry, error) {
	var answer *csipb.NodeGetVolumeHealthResponse
	_, err := p.ask(ctx, req, "NodeGetVolumeHealth", func(c Capabilities) bool { return c.VolumeHealth }, func(ctx context.Context, m *mounting) (err error) {
		answer, err = m.driver.node.NodeGetVolumeHealth(ctx, &csipb.NodeGetVolumeHealthRequest{
			VolumeId: m.handle, VolumePublishPath: m.place.target, StagingTargetPath: m.stage.path,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return healthOf(answer), nil
}

// StorageHealth calls NodeGetStorageHealth. It blocks until the driver answered,
// ctx at the latest.
func (p *Plugin) StorageHealth(ctx context.Context, driver string) ([]BackendHealth, error) {
	d, err := p.driver(driver, "")
	if err != nil {
		return nil, err
	}
	if !d.Capabilities.StorageHealth {
		return nil, ErrNotSupported
	}
	var answer *csipb.NodeGetStorageHealthResponse
	err = p.call(ctx, d, "NodeGetStorageHealth", func(ctx context.Context) (err error) {
		answer, err = d.node.NodeGetStorageHealth(ctx, &csipb.NodeGetStorageHealthRequest{})
		return err
	})
	var all []BackendHealth
	for _, one := range answer.GetBackendHealth() {
		status := ""
		switch one.GetStatus() {
		case csipb.StorageHealthErrorType_STORAGE_DEGRADED:
			status = "StorageDegraded"
		case csipb.StorageHealthErrorType_STORAGE_UNREACHABLE:
			status = "StorageUnreachable"
		case csipb.StorageHealthErrorType_UNKNOWN_STORAGE_HEALTH_ERROR_TYPE:
		}
		if status == "" {
			continue
		}
		all = append(all, BackendHealth{Status: status, Reason: one.GetReason(), Message: one.GetMessage()})
	}
	return all, err
}

// healthOf leaves out what this version does not know, as CSI asks for.
func healthOf(answer *csipb.NodeGetVolumeHealthResponse) (all []HealthEntry) {
	for _, one := range answer.GetVolumeHealth().GetHealthStatuses() {
		status := ""
		switch one.GetStatus() {
		case csipb.VolumeHealthErrorType_DEGRADED:
			status = "Degraded"
		case csipb.VolumeHealthErrorType_INACCESSIBLE:
			status = "Inaccessible"
		case csipb.VolumeHealthErrorType_DATA_LOSS:
			status = "DataLoss"
		case csipb.VolumeHealthErrorType_UNKNOWN_VOLUME_HEALTH_TYPE:
		}
		if status == "" {
			continue
		}
		all = append(all, HealthEntry{Status: status, Reason: one.GetReason(), Message: one.GetMessage()})
	}
	return all
}
