package agent

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/test/integration/testbed"
)

// pushTiny puts an image of its own under a repository, and returns its
// reference. It ends with that exit code.
func pushTiny(t *testing.T, e *env, repository string, exitCode int) string {
	t.Helper()
	ref := testbed.RegistryHost + "/" + repository + ":1"
	img, err := testbed.BusyboxFrom(t.Context(), v1.Config{
		Cmd: []string{"sh", "-c", fmt.Sprintf("exit %d", exitCode)}, Env: []string{"PATH=/bin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.bed.Registry.Push(t.Context(), ref, img); err != nil {
		t.Fatal(err)
	}
	return ref
}

// runImage applies a pod that runs an image once, under a pull policy.
func runImage(t *testing.T, e *env, name, image string, policy corev1.PullPolicy) {
	t.Helper()
	pod := newPod(name, corev1.Container{Name: "main", Image: image, ImagePullPolicy: policy})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	e.apply(t, pod)
}

func wantExit(t *testing.T, e *env, name string, code int32) {
	t.Helper()
	got := e.until(t, name, func(p corev1.Pod) error {
		c, _ := statusOf(p, "main")
		if c.State.Terminated == nil {
			return fmt.Errorf("it has not ended: %+v", c.State)
		}
		return nil
	})
	if c, _ := statusOf(got, "main"); c.State.Terminated.ExitCode != code {
		t.Errorf("%s ended with %d, not %d", name, c.State.Terminated.ExitCode, code)
	}
}

// imageIfNotPresent: once there, the registry is not asked again, although
// the tag has moved.
func imageIfNotPresent(t *testing.T, e *env) {
	ref := pushTiny(t, e, "if-not-present", 11)
	runImage(t, e, "image-first", ref, corev1.PullIfNotPresent)
	wantExit(t, e, "image-first", 11)
	pulls := e.bed.Registry.Pulls("if-not-present")
	pushTiny(t, e, "if-not-present", 12)
	runImage(t, e, "image-second", ref, corev1.PullIfNotPresent)
	wantExit(t, e, "image-second", 11)
	if now := e.bed.Registry.Pulls("if-not-present"); pulls == 0 || now != pulls {
		t.Errorf("the registry was asked %d times for the first pod, %d for the second", pulls, now-pulls)
	}
}

// imageAlways: each pod asks, and gets what the tag means now.
func imageAlways(t *testing.T, e *env) {
	ref := pushTiny(t, e, "always", 21)
	runImage(t, e, "always-first", ref, corev1.PullAlways)
	wantExit(t, e, "always-first", 21)
	pushTiny(t, e, "always", 22)
	runImage(t, e, "always-second", ref, corev1.PullAlways)
	wantExit(t, e, "always-second", 22)
}

func imageNever(t *testing.T, e *env) {
	ref := pushTiny(t, e, "never", 0)
	runImage(t, e, "never", ref, corev1.PullNever)
	got := e.until(t, "never", waiting("main", "ErrImageNeverPull"))
	if n := e.bed.Registry.Pulls("never"); n != 0 {
		t.Errorf("the registry was asked %d times", n)
	}
	if got.Status.Phase != corev1.PodPending {
		t.Errorf("the pod is %s, not Pending", got.Status.Phase)
	}
	// Someone brings the image: the pod goes on without being told.
	if err := e.bed.Pull(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	e.untilWithin(t, 2*patience, "never", phase(corev1.PodSucceeded))
}

// imageMissingThenThere: the stock reasons while it is missing, and a start
// once the registry has it.
func imageMissingThenThere(t *testing.T, e *env) {
	ref := pushTiny(t, e, "late", 0)
	e.bed.Registry.Break("late", http.StatusServiceUnavailable)
	runImage(t, e, "late", ref, corev1.PullIfNotPresent)
	e.until(t, "late", func(p corev1.Pod) error {
		if waiting("main", "ErrImagePull")(p) != nil {
			return waiting("main", "ImagePullBackOff")(p)
		}
		return nil
	})
	got := e.until(t, "late", waiting("main", "ImagePullBackOff"))
	if c, _ := statusOf(got, "main"); !strings.HasPrefix(c.State.Waiting.Message, `Back-off pulling image "`+ref+`"`) {
		t.Errorf("the message is %q", c.State.Waiting.Message)
	}
	e.bed.Registry.Break("late", 0)
	began := time.Now()
	e.until(t, "late", phase(corev1.PodSucceeded))
	if took := time.Since(began); took > 45*time.Second {
		t.Errorf("it ran %v after the registry had the image", took)
	}
}

func imageNameInvalid(t *testing.T, e *env) {
	runImage(t, e, "bad-name", "UPPER case:!!", corev1.PullIfNotPresent)
	e.until(t, "bad-name", waiting("main", "InvalidImageName"))
}
