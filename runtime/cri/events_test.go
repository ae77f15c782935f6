package cri

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
)

func TestEvents(t *testing.T) {
	f := newFake()
	f.stream = func(s runtimeapi.RuntimeService_GetContainerEventsServer) error {
		for _, e := range []*runtimeapi.ContainerEventResponse{
			{CreatedAt: 7, PodSandboxStatus: &runtimeapi.PodSandboxStatus{Metadata: &runtimeapi.PodSandboxMetadata{Uid: "a"}}},
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
	var hints []runtime.Hint
	err := c.Events(t.Context(), func() { opened++ }, func(h runtime.Hint) { hints = append(hints, h) })
	if !errors.Is(err, errStreamEnded) {
		t.Errorf("Events = %v", err)
	}
	if want := []runtime.Hint{{UID: "a", At: time.Unix(0, 7)}, {UID: "b"}, {}}; opened != 1 || !slices.Equal(hints, want) {
		t.Errorf("opened %d times, hints %v, want once and %v", opened, hints, want)
	}
}

func TestEventsOfARuntimeWithout(t *testing.T) {
	c := start(t, newFake())
	if err := c.Events(t.Context(), func() {}, func(runtime.Hint) {}); !IsUnimplemented(err) {
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
	if err := c.Events(ctx, cancel, func(runtime.Hint) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Events = %v", err)
	}
}
