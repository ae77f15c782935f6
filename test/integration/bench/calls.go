package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/test/integration/testbed"
)

// counts are the calls that one pod's start or stop took, by method.
type counts map[string]int

func (c counts) total() int {
	sum := 0
	for _, n := range c {
		sum += n
	}
	return sum
}

func (c counts) String() string {
	var parts []string
	for _, method := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%d %s", c[method], method))
	}
	return strings.Join(parts, ", ")
}

// count leaves out what is not done for a pod: the questions about health and
// the lists of all pods.
func count(calls []Call) counts {
	out := counts{}
	for _, c := range calls {
		switch c.method {
		case "Version", "Status", "RuntimeConfig", "GetContainerEvents":
			continue
		case "ListContainers":
			var req runtimeapi.ListContainersRequest
			if proto.Unmarshal(c.request, &req) == nil && req.Filter == nil {
				continue
			}
		case "ListPodSandbox":
			var req runtimeapi.ListPodSandboxRequest
			if proto.Unmarshal(c.request, &req) == nil && req.Filter == nil {
				continue
			}
		}
		out[c.method]++
	}
	return out
}

// recording is what an agent asked of the runtime for one pod.
type recording struct {
	template    Template
	start, stop counts
}

// afterwards is how long calls that come after the fact are waited for.
const afterwards = 2 * time.Second

// recordPod lets an agent start and stop pods through a recorder. The first
// pod warms up; the second one counts.
func recordPod(ctx context.Context, bed *testbed.Bed) (out recording, err error) {
	proxy, err := Record(ctx, bed.Socket, filepath.Join(bed.Dir, "recorder.sock"))
	if err != nil {
		return out, fmt.Errorf("recorder: %w", err)
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	a, err := startAgent(ctx, bed, proxy.Socket)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, a.stop(ctx)) }()
	for i := range 2 {
		name, uid := fmt.Sprintf("template-%d", i), uidOf("template", i)
		pod := newPod(name, uid)
		proxy.Take()
		if _, err := a.start(ctx, pod); err != nil {
			return out, err
		}
		if err := Pass(ctx, afterwards); err != nil {
			return out, err
		}
		started := proxy.Take()
		if out.template, err = TemplateOf(pod, a.cfg.RootDir, started); err != nil {
			return out, err
		}
		if _, err := a.stopPods(ctx, pod); err != nil {
			return out, err
		}
		if err := Pass(ctx, afterwards); err != nil {
			return out, err
		}
		stopped := proxy.Take()
		out.start, out.stop = count(started), count(stopped)
		if err := out.template.Stopped(stopped); err != nil {
			return out, err
		}
	}
	return out, nil
}
