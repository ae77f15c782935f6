package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/node"
	"nodekit.dev/node/podspec"
	"nodekit.dev/node/source"
	"nodekit.dev/runtime"
)

// podRows lists the static pods of files.
func (p *preflighter) podRows(ctx context.Context, loaded *config.Loaded) {
	path := loaded.Kubelet.StaticPodPath
	if path == "" {
		return
	}
	if loaded.Kubelet.StaticPodURL != "" {
		p.add("static pod", loaded.Kubelet.StaticPodURL, different, "not asked: preflight talks to nobody")
	}
	pods, problems, err := p.readStaticPods(ctx, path, loaded)
	if err != nil {
		p.add("static pod", path, unsupported, err.Error())
		return
	}
	for _, problem := range problems {
		p.add("static pod", problem.Location, unsupported, string(problem.Reason)+": "+problem.Message)
	}
	check, err := p.podCheck(ctx, loaded)
	if err != nil {
		p.add("static pod", path, unsupported, err.Error())
		return
	}
	for _, pod := range pods {
		verdict, note := same, ""
		if err := check(pod); err != nil {
			verdict, note = unsupported, err.Error()
		}
		p.add("static pod", pod.Namespace+"/"+pod.Name, verdict, note)
	}
}

// readStaticPods reads the folder once, with the source that the agent uses.
func (p *preflighter) readStaticPods(ctx context.Context, path string, loaded *config.Loaded) ([]*corev1.Pod, []source.Problem, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, nil, err
	}
	name, err := nodeName(p.flags.hostname)
	if err != nil {
		return nil, nil, err
	}
	var problems []source.Problem
	none := func(context.Context) ([]runtime.Pod, error) { return nil, nil }
	dir, err := source.NewDir(source.DirConfig{
		Config: source.Config{
			NodeName: name, Adopter: source.AdoptFrom(none), Refuse: refuse(settings{options: p.options, flags: p.flags}), Log: quiet(),
			Observer: source.Observer{Problem: func(p source.Problem) { problems = append(problems, p) }},
		},
		Path: path, Period: loaded.Kubelet.FileCheckFrequency.Duration,
	})
	if err != nil {
		return nil, nil, err
	}
	first, err := firstUpdate(ctx, dir)
	return first.Pods, problems, err
}

// firstUpdate runs a source until it has told its pods once.
func firstUpdate(ctx context.Context, s node.Source) (first node.SourceUpdate, err error) {
	group := tasks.New(ctx)
	updates := make(chan node.SourceUpdate)
	group.Go("static pods", func(ctx context.Context) error { return s.Run(ctx, updates) })
	select {
	case first = <-updates:
	case <-group.Context().Done():
	}
	group.Stop()
	return first, group.Wait()
}

// podCheck is what the agent asks of each pod before it runs it.
func (p *preflighter) podCheck(ctx context.Context, loaded *config.Loaded) (func(*corev1.Pod) error, error) {
	s := settings{options: p.options, flags: p.flags, given: p.set, loaded: loaded}
	gates, err := knownGates(p.options)
	if err != nil {
		return nil, err
	}
	s.features, _ = gates.Resolve(loaded.Kubelet.FeatureGates) // what is wrong with it is listed as gates
	cfg, _, err := translate(ctx, s, quiet())
	if err != nil {
		return nil, err
	}
	if cfg, err = cfg.Complete(); err != nil {
		return nil, err
	}
	builder, err := podspec.New(cfg.Spec)
	if err != nil {
		return nil, err
	}
	return builder.Check, nil
}

// stateFile is a file or folder that a stock kubelet leaves in its root
// directory.
type stateFile struct {
	path  string // glob below the root directory
	judge func(path string) (verdict, string)
}

// stateFiles are the stock kubelet's.
func stateFiles() []stateFile {
	return []stateFile{
		{"config.yaml", plainly(same, "given by --config")},
		{"kubeadm-flags.env", plainly(same, "read by the systemd unit")},
		{"pki/kubelet-client-current.pem", stateOfFlag("cert-dir")},
		{"pki/kubelet.crt", stateOfFlag("cert-dir")},
		{"pki/kubelet-server-current.pem", stateOfFlag("cert-dir")},
		{"cpu_manager_state", policyIs("none", "containers keep their CPUs, but new ones get none of their own")},
		{"memory_manager_state", policyIs("None", "containers keep their memory nodes, but new ones get none of their own")},
		{"dra_manager_state", plainly(different, "left alone: no claim is prepared or taken back")},
		{"device-plugins/kubelet_internal_checkpoint", judgeDevices},
		{"allocated_pods_state", plainly(different, "left alone: pods have the resources that their specs ask for")},
		{"actuated_pods_state", plainly(different, "left alone: pods have the resources that their specs ask for")},
		{"pod_status_manager_state", plainly(different, "left alone: nothing of v1.37 reads it")},
		{"image_manager", plainly(different, "left alone: who pulled an image is not looked at")},
		{"graceful_node_shutdown_state", plainly(different, "left alone")},
		{"plugins_registry/*.sock", plainly(same, "plugins that register: CSI drivers are used, others are told that nobody takes them")},
		{"pods/*", plainly(same, "the folder of a pod: kept while the pod runs")},
		{"checkpoints/*.tar", plainly(same, "left alone, as by the stock kubelet")},
	}
}

// stateRows lists the state files that are there.
func (p *preflighter) stateRows() {
	for _, f := range stateFiles() {
		found, err := filepath.Glob(filepath.Join(p.flags.rootDir, f.path))
		if err != nil {
			p.add("state", f.path, unsupported, err.Error())
		}
		slices.Sort(found)
		for _, path := range found {
			verdict, note := f.judge(path)
			p.add("state", path, verdict, note)
		}
	}
}

func plainly(v verdict, note string) func(string) (verdict, string) {
	return func(string) (verdict, string) { return v, note }
}

// stateOfFlag is for files that exist because of a flag.
func stateOfFlag(name string) func(string) (verdict, string) {
	return func(string) (verdict, string) {
		for _, flag := range config.Flags() {
			if flag.Name == name {
				return ofState(flag.State, flag.Text)
			}
		}
		return unsupported, "--" + name + " is not known"
	}
}

// policyIs is for the state of the CPU and memory managers.
func policyIs(none, otherwise string) func(string) (verdict, string) {
	return func(path string) (verdict, string) {
		var state struct {
			PolicyName string `json:"policyName"`
		}
		if err := readJSON(path, &state); err != nil {
			return different, "torn, and not needed: " + err.Error()
		}
		if state.PolicyName == none || state.PolicyName == "" {
			return same, ""
		}
		return unsupported, "policy " + state.PolicyName + ": " + otherwise
	}
}

func judgeDevices(path string) (verdict, string) {
	var state struct {
		Data struct {
			PodDeviceEntries []struct{ PodUID, ResourceName string }
		}
	}
	if err := readJSON(path, &state); err != nil {
		return different, "torn, and not needed: " + err.Error()
	}
	var resources []string
	for _, entry := range state.Data.PodDeviceEntries {
		if !slices.Contains(resources, entry.ResourceName) {
			resources = append(resources, entry.ResourceName)
		}
	}
	if len(resources) == 0 {
		return same, "no pod has a device"
	}
	slices.Sort(resources)
	return unsupported, "pods have devices (" + strings.Join(resources, ", ") + "): resources does not give any yet"
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return errors.New("empty")
	}
	return json.Unmarshal(data, into)
}
