package csidriver

import (
	"context"
	"errors"
	"sync"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registrar is what node-driver-registrar is beside a real driver.
type registrar struct {
	registration.UnsafeRegistrationServer
	driver *Driver
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: "CSIPlugin", Name: r.driver.cfg.Name, Endpoint: r.driver.Endpoint(), SupportedVersions: r.driver.cfg.Versions,
	}, nil
}

func (r registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	r.driver.told.add(s.GetPluginRegistered(), s.GetError())
	return &registration.RegistrationStatusResponse{}, nil
}

// told is what the agent said about the registration.
type told struct {
	mu      sync.Mutex
	times   int
	last    error // nil: it is registered
	changed chan struct{}
}

func newTold() *told { return &told{changed: make(chan struct{})} }

func (t *told) add(ok bool, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times++
	if t.last = nil; !ok {
		t.last = errors.New(reason)
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *told) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times, t.last = 0, nil
}

// Registered waits until the agent took the driver since the last Start. When
// ctx ends first, the error is what the agent said.
func (d *Driver) Registered(ctx context.Context) error {
	for {
		d.told.mu.Lock()
		changed, times, last := d.told.changed, d.told.times, d.told.last
		d.told.mu.Unlock()
		if times > 0 && last == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.Join(errors.New("csidriver: the agent did not take the driver"), last, ctx.Err())
		}
	}
}

type identity struct {
	csi.UnimplementedIdentityServer
	driver *Driver
}

func (i identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.driver.cfg.Name, VendorVersion: "1"}, nil
}

func (i identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	if len(i.driver.cfg.Topology) == 0 {
		return &csi.GetPluginCapabilitiesResponse{}, nil
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			Type: csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
		}},
	}}}, nil
}

func (i identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
