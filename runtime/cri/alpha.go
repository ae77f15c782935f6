package cri

import (
	"context"
	"path"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The API versions. cri-api ships the messages of v1 alone; v1alpha2 has the
// same messages on the wire, under another method prefix and with fewer fields.
const (
	apiV1       = "v1"
	apiV1alpha2 = "v1alpha2"

	// kubeletAPIVersion is what kubelets put in the Version request.
	kubeletAPIVersion = "0.1.0"
)

// versioned rewrites "/runtime.v1.Service/Method" for the API version.
func versioned(api, method string) string {
	if api == apiV1 {
		return method
	}
	return strings.Replace(method, "/runtime.v1.", "/runtime."+api+".", 1)
}

// alphaRule says what to do about something that v1alpha2 does not have.
type alphaRule int

const (
	// refuse: leaving the field out would give less than was asked.
	refuse alphaRule = iota + 1
	// drop: the field is a remark that changes nothing in the runtime.
	drop
)

// alphaFields are the request fields of v1 that v1alpha2 lacks in at least one
// of the releases that shipped it (cri-api v0.23 to v0.25), by message and
// field name.
func alphaFields(field string) alphaRule {
	switch field {
	case "ImageSpec.user_specified_image":
		return drop
	case "Capability.add_ambient_capabilities",
		"ContainerConfig.CDI_devices",
		"ContainerConfig.stop_signal",
		"ImageSpec.image_ref",
		"ImageSpec.runtime_handler",
		"LinuxContainerSecurityContext.supplemental_groups_policy",
		"LinuxSandboxSecurityContext.supplemental_groups_policy",
		"Mount.gidMappings",
		"Mount.image",
		"Mount.image_sub_path",
		"Mount.mount_options",
		"Mount.recursive_read_only",
		"Mount.uidMappings",
		"NamespaceOption.userns_options":
		return refuse
	}
	return 0
}

// alphaLacks says whether v1alpha2 has no such method.
func alphaLacks(method string) bool {
	switch path.Base(method) {
	case "CheckpointContainer", "CheckpointPod", "RestorePod", "GetContainerEvents", "RuntimeConfig",
		"UpdatePodSandboxResources", "ListMetricDescriptors", "ListPodSandboxMetrics",
		"StreamPodSandboxes", "StreamContainers", "StreamContainerStats", "StreamPodSandboxStats",
		"StreamPodSandboxMetrics", "StreamImages":
		return true
	}
	return false
}

// fit gives the request as the API version can carry it, or says which field
// it can not carry.
func fit(api, method string, req any) (any, error) {
	if api == apiV1 {
		return req, nil
	}
	if alphaLacks(method) {
		return nil, status.Errorf(codes.Unimplemented, "the runtime speaks CRI %s only, which has no %s", api, path.Base(method))
	}
	m, ok := req.(proto.Message)
	if !ok {
		return req, nil
	}
	m = proto.Clone(m) // a field may be dropped, and the caller may share the message
	if err := fitMessage(m.ProtoReflect()); err != nil {
		return nil, err
	}
	return m, nil
}

// fitMessage applies alphaFields to a message and all that is in it.
func fitMessage(m protoreflect.Message) error {
	var err error
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(fd.Parent().Name()) + "." + string(fd.Name())
		switch alphaFields(name) {
		case drop:
			m.Clear(fd)
			return true
		case refuse:
			err = status.Errorf(codes.InvalidArgument, "the runtime speaks CRI %s only, which has no %s", apiV1alpha2, name)
			return false
		}
		err = fitValue(fd, v)
		return err == nil
	})
	return err
}

func fitValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) error {
	if fd.Kind() != protoreflect.MessageKind || fd.IsMap() {
		return nil // the maps of the CRI hold strings only
	}
	if !fd.IsList() {
		return fitMessage(v.Message())
	}
	for i := range v.List().Len() {
		if err := fitMessage(v.List().Get(i).Message()); err != nil {
			return err
		}
	}
	return nil
}

// asVersion is a connection that speaks one fixed version, for probes.
type asVersion struct {
	grpc.ClientConnInterface
	api string
}

func (a asVersion) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return a.ClientConnInterface.Invoke(ctx, versioned(a.api, method), args, reply, opts...)
}
