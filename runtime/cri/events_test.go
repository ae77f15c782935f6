package cri

import (
	"context"
	"errors"
	"slices"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestEvents(t *testing.T) {
	f := newFake()
	f.stream = func(s runtimeapi.RuntimeService_GetContainerEventsServer) error {
		for _, e := range []*runtimeapi.ContainerEventResponse{
			{PodSandboxStatus: &runtimeapi.PodSandboxStatus{Metadata: &runtimeapi.PodSandboxMetadata{Uid: "a"}}},
			{ContainersStatuses: []*runtimeapi.ContainerStatus{{}, {Labels: podLabels("b")}}},
			{ContainerId: "c"},
		} {
			if err := s.Send(e); err != nil {
				return err
			}
		}
		return nil
	}
	c := start(t, f)
	opened := 0
	var uids []string
	err := c.Events(t.Context(), func() { opened++ }, func(uid string) { uids = append(uids, uid) })
	if !errors.Is(err, errStreamEnded) {
		t.Errorf("Events = %v", err)
	}
	if want := []string{"a", "b", ""}; opened != 1 || !slices.Equal(uids, want) {
		t.Errorf("opened %d times, uids %q, want once and %q", opened, uids, want)
	}
}

func TestEventsOfARuntimeWithout(t *testing.T) {
	c := start(t, newFake())
	if err := c.Events(t.Context(), func() {}, func(string) {}); !IsUnimplemented(err) {
		t.Errorf("Events = %v", err)
	}
}

func TestEventsEndWithTheContext(t *testing.T) {
	f := newFake()
	f.stream = func(s runtimeapi.RuntimeService_GetContainerEventsServer) error {
		<-s.Context().Done()
		return s.Context().Err()
	}
	c := start(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.Events(ctx, cancel, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Events = %v", err)
	}
}
