package agent

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"nodekit.dev/test/integration/testbed"
)

// soaking runs what takes too long for make test.
var soaking = os.Getenv("NODEKIT_SOAK") != ""

// eachContainerd runs a test on containerd 2 and, in make soak, on 1.6 as well.
func eachContainerd(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	testbed.Require(t)
	for _, version := range []string{testbed.V2, testbed.V16} {
		if version == testbed.V16 && !soaking {
			continue
		}
		t.Run("containerd "+version, func(t *testing.T) { test(t, version) })
	}
}

// env is one agent on one bed. Subtests share it: each uses pods of its own.
type env struct {
	bed       *testbed.Bed
	agent     *testbed.Agent
	manifests string
}

// newEnv starts a bed and an agent without pods, with these fields of
// KubeletConfiguration over the bed's, and checks at the end of the test that
// nothing of the pods is left.
func newEnv(t *testing.T, version string, config ...map[string]any) *env {
	t.Helper()
	bed, err := testbed.Start(t.Context(), testbed.Options{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { within(t, time.Minute, bed.Stop) })
	e := &env{bed: bed, manifests: filepath.Join(bed.Dir, "manifests")}
	if err := os.Mkdir(e.manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	options := testbed.AgentOptions{Manifests: e.manifests, Config: map[string]any{}}
	for _, fields := range config {
		maps.Copy(options.Config, fields)
	}
	e.agent, err = testbed.StartAgent(t.Context(), bed, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		within(t, time.Minute, e.nothingLeft)
		within(t, 30*time.Second, e.agent.Stop)
	})
	return e
}

// within calls do with a time limit, also after the test's own context ended.
func within(t *testing.T, limit time.Duration, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	defer cancel()
	if err := do(ctx); err != nil {
		t.Error(err)
	}
}

// newPod is a pod that ends quickly when it is told to.
func newPod(name string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: ptr(int64(10))},
	}
}

// shell is a container that runs a script.
func shell(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: testbed.BusyboxImage, Command: []string{"sh", "-c", script}}
}

// untilTerm is a script that ends at once on SIGTERM.
const untilTerm = "trap 'exit 0' TERM; sleep 10000 & wait"

func ptr[T any](v T) *T { return &v }

// manifest is the path of a pod's file.
func (e *env) manifest(name string) string { return filepath.Join(e.manifests, name+".yaml") }

// apply writes the pod's manifest in one step, over an earlier one, and takes
// it away at the end of the test.
func (e *env) apply(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	text, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	e.write(t, pod.Name, string(text))
}

// write puts any text where the manifest of a pod would be.
func (e *env) write(t *testing.T, name, text string) {
	t.Helper()
	tmp := filepath.Join(e.bed.Dir, "tmp-"+name)
	if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, e.manifest(name)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(e.manifest(name)) })
}

// remove takes the pod's manifest away.
func (e *env) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(e.manifest(name)); err != nil {
		t.Fatal(err)
	}
}

// trace is a file that a pod's containers write lines to, to show their order.
type trace struct{ dir string }

// traced gives every container of the pod a folder /trace with a file log.
func traced(t *testing.T, pod *corev1.Pod) trace {
	t.Helper()
	tr := trace{dir: podFolder(t)}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "trace", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: tr.dir},
	}})
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, corev1.VolumeMount{Name: "trace", MountPath: "/trace"})
		}
	}
	return tr
}

// podFolder is a folder that pods write to. They may still do so when the test
// ends, which t.TempDir takes for a failure.
func podFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nodekit-pods-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for containers that do not run as root
		t.Fatal(err)
	}
	t.Cleanup(func() {
		within(t, patience, func(ctx context.Context) error {
			return testbed.Eventually(ctx, 50*time.Millisecond, func(context.Context) error { return os.RemoveAll(dir) })
		})
	})
	return dir
}

// say is a piece of a script that writes a line to the trace.
func say(line string) string { return "echo '" + line + "' >> /trace/log; " }

// lines are what was said so far.
func (tr trace) lines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tr.dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
