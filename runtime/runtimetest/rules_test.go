package runtimetest_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"nodekit.dev/runtime"
	"nodekit.dev/runtime/runtimetest"
)

// rig is a world with one pod, whose report is not the test's.
type rig struct {
	*runtimetest.World
	t           *testing.T
	report      *recorder
	sandbox     runtime.SandboxConfig
	sandboxID   string
	containerID string
}

func newRig(t *testing.T, cfg runtimetest.Config) *rig {
	r := &rig{t: t, report: &recorder{}}
	r.World = runtimetest.NewWorld(r.report, cfg)
	r.Script("app", runtimetest.Behaviour{IgnoresTERM: true})
	r.sandbox, r.sandboxID, r.containerID = pod(t, r.World, "u1")
	return r
}

func (r *rig) start() { must(r.t, r.StartContainer(r.t.Context(), r.containerID)) }

// create makes another container; its error is of no interest to the rules.
func (r *rig) create(sandboxID, name string, attempt uint32, change func(*runtime.ContainerConfig)) string {
	cfg := runtimetest.ContainerFor(r.sandbox, name, image, attempt)
	if change != nil {
		change(&cfg)
	}
	id, _ := r.CreateContainer(r.t.Context(), sandboxID, cfg, r.sandbox)
	return id
}

func (r *rig) run(change func(*runtime.SandboxConfig)) string {
	cfg := r.sandbox
	cfg.Attempt++
	if change != nil {
		change(&cfg)
	}
	id, _ := r.RunSandbox(r.t.Context(), cfg)
	return id
}

func TestRules(t *testing.T) {
	const grace = time.Second
	tests := []struct {
		name string
		rule runtimetest.Rule
		do   func(r *rig)
	}{
		{"stop a sandbox over a running container", runtimetest.RuleSandboxOverRunning, func(r *rig) {
			r.start()
			must(r.t, r.StopSandbox(r.t.Context(), r.sandboxID))
		}},
		{"remove a dead sandbox over a running container", runtimetest.RuleSandboxOverRunning, func(r *rig) {
			r.start()
			r.KillSandbox("u1")
			must(r.t, r.RemoveSandbox(r.t.Context(), r.sandboxID))
		}},
		{"remove a ready sandbox", runtimetest.RuleRemoveReadySandbox, func(r *rig) {
			must(r.t, r.RemoveSandbox(r.t.Context(), r.sandboxID))
		}},
		{"remove a running container", runtimetest.RuleRemoveRunning, func(r *rig) {
			r.start()
			must(r.t, r.RemoveContainer(r.t.Context(), r.containerID))
		}},
		{"create in a stopped sandbox", runtimetest.RuleDeadSandbox, func(r *rig) {
			must(r.t, r.StopSandbox(r.t.Context(), r.sandboxID))
			r.create(r.sandboxID, "other", 0, nil)
		}},
		{"start in a stopped sandbox", runtimetest.RuleDeadSandbox, func(r *rig) {
			must(r.t, r.StopSandbox(r.t.Context(), r.sandboxID))
			_ = r.StartContainer(r.t.Context(), r.containerID)
		}},
		{"create in a sandbox seen dead long ago", runtimetest.RuleDeadSandbox, func(r *rig) {
			r.KillSandbox("u1")
			look(r.t, r.World, "u1")
			pass(11 * time.Second)
			r.create(r.sandboxID, "other", 0, nil)
		}},
		{"create in the sandbox of another pod", runtimetest.RuleForeignSandbox, func(r *rig) {
			other := runtimetest.SandboxFor("default", "pod-u2", "u2", 0)
			_, _ = r.CreateContainer(r.t.Context(), r.sandboxID, runtimetest.ContainerFor(r.sandbox, "other", image, 0), other)
		}},
		{"two copies of a container", runtimetest.RuleTwoCopies, func(r *rig) {
			r.start()
			must(r.t, r.StartContainer(r.t.Context(), r.create(r.sandboxID, "app", 1, nil)))
		}},
		{"two ready sandboxes", runtimetest.RuleTwoSandboxes, func(r *rig) { r.run(nil) }},
		{"a container attempt that repeats", runtimetest.RuleAttempt, func(r *rig) { r.create(r.sandboxID, "app", 0, nil) }},
		{"a container attempt that falls", runtimetest.RuleAttempt, func(r *rig) {
			r.create(r.sandboxID, "other", 5, nil)
			r.create(r.sandboxID, "other", 4, nil)
		}},
		{"a sandbox attempt that repeats", runtimetest.RuleAttempt, func(r *rig) {
			must(r.t, r.StopSandbox(r.t.Context(), r.sandboxID))
			r.run(func(c *runtime.SandboxConfig) { c.Attempt = 0 })
		}},
		{"a sandbox attempt that falls", runtimetest.RuleAttempt, func(r *rig) {
			must(r.t, r.StopSandbox(r.t.Context(), r.sandboxID))
			must(r.t, r.StopSandbox(r.t.Context(), r.run(func(c *runtime.SandboxConfig) { c.Attempt = 7 })))
			r.run(func(c *runtime.SandboxConfig) { c.Attempt = 6 })
		}},
		{"create after the stop of the pod", runtimetest.RuleStartAfterStop, func(r *rig) {
			r.Forbid("u1")
			r.create(r.sandboxID, "other", 0, nil)
		}},
		{"a sandbox after the stop of the pod", runtimetest.RuleStartAfterStop, func(r *rig) {
			must(r.t, r.StopSandbox(r.t.Context(), r.sandboxID))
			r.Forbid("u1")
			r.run(nil)
		}},
		{"start a container twice", runtimetest.RuleStartTwice, func(r *rig) {
			r.start()
			_ = r.StartContainer(r.t.Context(), r.containerID)
		}},
		{"create from an image that was not pulled", runtimetest.RuleImageMissing, func(r *rig) {
			r.create(r.sandboxID, "other", 0, func(c *runtime.ContainerConfig) { c.Image.Ref = "registry.example/other:1" })
		}},
		{"remove a used image", runtimetest.RuleImageInUse, func(r *rig) {
			must(r.t, r.RemoveImage(r.t.Context(), runtime.ImageSpec{Image: image}))
		}},
		{"remove a pinned image", runtimetest.RuleImageInUse, func(r *rig) {
			must(r.t, r.RemoveImage(r.t.Context(), runtime.ImageSpec{Image: runtimetest.PauseImage}))
		}},
		{"a grace that grows", runtimetest.RuleGraceGrew, func(r *rig) {
			r.start()
			go func() { _ = r.StopContainer(r.t.Context(), r.containerID, grace) }()
			synctest.Wait()
			must(r.t, r.StopContainer(r.t.Context(), r.containerID, 2*grace))
		}},
		{"a container without a label", runtimetest.RuleStock, func(r *rig) {
			r.create(r.sandboxID, "other", 0, func(c *runtime.ContainerConfig) { delete(c.Labels, runtime.LabelContainerName) })
		}},
		{"a container without an annotation", runtimetest.RuleStock, func(r *rig) {
			r.create(r.sandboxID, "other", 0, func(c *runtime.ContainerConfig) { delete(c.Annotations, runtime.AnnotationContainerHash) })
		}},
		{"a container with a restart count that is no number", runtimetest.RuleStock, func(r *rig) {
			r.create(r.sandboxID, "other", 0, func(c *runtime.ContainerConfig) { c.Annotations[runtime.AnnotationRestartCount] = "often" })
		}},
		{"a sandbox with the labels of another pod", runtimetest.RuleStock, func(r *rig) {
			must(r.t, r.StopSandbox(r.t.Context(), r.sandboxID))
			r.run(func(c *runtime.SandboxConfig) {
				c.Labels = maps.Clone(c.Labels)
				c.Labels[runtime.LabelPodUID] = "u2"
			})
		}},
		{"a slice with the driver cgroupfs", runtimetest.RuleCgroupParent, func(r *rig) {
			must(r.t, r.StopSandbox(r.t.Context(), r.sandboxID))
			r.run(func(c *runtime.SandboxConfig) { c.CgroupParent = "kubepods-pod1.slice" })
		}},
		{"stop a container that never existed", runtimetest.RuleUnknownID, func(r *rig) {
			must(r.t, r.StopContainer(r.t.Context(), "container-99", 0))
		}},
		{"remove a sandbox that never existed", runtimetest.RuleUnknownID, func(r *rig) {
			must(r.t, r.RemoveSandbox(r.t.Context(), "made-up"))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, runtimetest.Config{})
				tt.do(r)
				checkViolation(t, r, tt.rule)
			})
		})
		t.Run(tt.name+", allowed", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, runtimetest.Config{Allow: []runtimetest.Rule{tt.rule}})
				tt.do(r)
				if len(r.report.text) > 0 {
					t.Errorf("reported although allowed: %q", r.report.text)
				}
			})
		})
	}
}

// checkViolation wants that rule, and no other, broken; and pod and container
// named where there are some.
func checkViolation(t *testing.T, r *rig, rule runtimetest.Rule) {
	t.Helper()
	broken := r.Violations()
	if len(broken) != 1 || broken[0].Rule != rule || len(r.report.text) != 1 {
		t.Fatalf("violations %v, reports %q; want %s once", broken, r.report.text, rule)
	}
	v, text := broken[0], r.report.text[0]
	if rule == runtimetest.RuleImageInUse || rule == runtimetest.RuleUnknownID {
		return
	}
	if v.UID != "u1" || !strings.Contains(text, "default/pod-u1") || !strings.Contains(text, v.Container) {
		t.Errorf("the report does not name the pod: %q", text)
	}
}

func TestLeak(t *testing.T) {
	r := newRig(t, runtimetest.Config{})
	r.CheckEmpty()
	broken := r.Violations()
	if len(broken) != 2 || broken[0].Rule != runtimetest.RuleLeak || broken[1].Container != "app" {
		t.Errorf("violations %v, want a sandbox and a container that leak", broken)
	}
}

// What looks like a broken rule but is what a sound agent does.
func TestSoundAgentIsNotBlamed(t *testing.T) {
	tests := []struct {
		name string
		do   func(r *rig)
	}{
		{"stop a dead sandbox over a running container", func(r *rig) {
			r.start()
			r.KillSandbox("u1")
			must(r.t, r.StopSandbox(r.t.Context(), r.sandboxID))
		}},
		{"create in a sandbox that just died", func(r *rig) {
			r.KillSandbox("u1")
			look(r.t, r.World, "u1")
			pass(9 * time.Second)
			if id := r.create(r.sandboxID, "other", 0, nil); id != "" {
				r.t.Error("the container was created")
			}
		}},
		{"stop and remove what is gone", func(r *rig) {
			must(r.t, r.RemoveContainer(r.t.Context(), r.containerID))
			must(r.t, r.RemoveContainer(r.t.Context(), r.containerID))
			must(r.t, r.StopContainer(r.t.Context(), r.containerID, 0))
		}},
		{"an attempt again after all of that name are gone", func(r *rig) {
			must(r.t, r.RemoveContainer(r.t.Context(), r.containerID))
			r.create(r.sandboxID, "app", 0, nil)
		}},
		{"a start that was under way when the pod was told to stop", func(r *rig) {
			r.Forbid("u1")
			r.start()
		}},
		{"a start after the stop was taken back", func(r *rig) {
			r.Forbid("u1")
			r.Permit("u1")
			r.create(r.sandboxID, "other", 0, nil)
		}},
		{"a grace that shrinks", func(r *rig) {
			r.start()
			go func() { _ = r.StopContainer(r.t.Context(), r.containerID, time.Minute) }()
			synctest.Wait()
			must(r.t, r.StopContainer(r.t.Context(), r.containerID, time.Second))
		}},
		{"remove an image that nobody uses", func(r *rig) {
			r.AddImage("registry.example/other:1", runtimetest.RegistryImage{})
			must(r.t, r.RemoveImage(r.t.Context(), runtime.ImageSpec{Image: "registry.example/other:1"}))
			must(r.t, r.RemoveImage(r.t.Context(), runtime.ImageSpec{Image: "registry.example/other:1"}))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, runtimetest.Config{})
				tt.do(r)
				if broken := r.Violations(); len(broken) > 0 {
					t.Errorf("blamed for %v", broken)
				}
			})
		})
	}
}

func TestAmbientCapabilitiesOnTheWire(t *testing.T) {
	r := newRig(t, runtimetest.Config{})
	c := dial(t, r.Serve(t, t.TempDir()).Endpoint())
	cfg := containerConfig(runtimetest.ContainerFor(r.sandbox, "other", image, 0))
	cfg.Linux.SecurityContext.Capabilities = &criv1.Capability{AddAmbientCapabilities: []string{"NET_RAW"}}
	_, err := c.runtime.CreateContainer(t.Context(), &criv1.CreateContainerRequest{
		PodSandboxId: r.sandboxID, Config: cfg, SandboxConfig: sandboxConfig(r.sandbox),
	})
	must(t, err)
	checkViolation(t, r, runtimetest.RuleAmbient)
}
