package wire_test

import (
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node"
	"nodekit.dev/node/lifecycle"
	"nodekit.dev/node/wire"
	"nodekit.dev/runtime/images"
	"nodekit.dev/runtime/runtimetest"
)

// TestImageEvents are in the stock words of v1.37. That a pull failed is told
// by the pod machine.
func TestImageEvents(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	client := clientOf(t, w)
	p, err := images.New(images.DefaultConfig(), client)
	must(t, err)
	puller := wire.Puller(p, client)
	w.Registry("registry.test/app:1", runtimetest.RegistryImage{Size: 4321})
	var got []lifecycle.Event
	pull := func(image string, policy corev1.PullPolicy) error {
		got = nil
		_, err := puller.Pull(t.Context(), node.PullRequest{
			Pod: podNamed("1", "web"), Container: "app", Image: image, Policy: policy,
			Tell: func(e lifecycle.Event) { got = append(got, e) },
		})
		return err
	}
	const pulled = `^Pulled: Successfully pulled image "registry.test/app:1" in [0-9.]+m?s \([0-9.]+m?s including waiting\)\. Image size: 4321 bytes\.$`
	for _, tc := range []struct {
		image  string
		policy corev1.PullPolicy
		fails  bool
		want   []string
	}{
		{"registry.test/app:1", corev1.PullIfNotPresent, false, []string{`^Pulling: Pulling image "registry.test/app:1"$`, pulled}},
		{"registry.test/app:1", corev1.PullIfNotPresent, false, []string{`^Pulled: Container image "registry.test/app:1" already present on machine and can be accessed by the pod$`}},
		{"registry.test/app:1", corev1.PullAlways, false, []string{`^Pulling: `, pulled}},
		{"missing.invalid/x:1", corev1.PullIfNotPresent, true, []string{`^Pulling: Pulling image "missing.invalid/x:1"$`}},
		{"missing.invalid/y:1", corev1.PullNever, true, nil},
	} {
		if err := pull(tc.image, tc.policy); (err != nil) != tc.fails {
			t.Errorf("%s: error %v", tc.image, err)
		}
		if len(got) != len(tc.want) {
			t.Errorf("%s: events %+v, want %q", tc.image, got, tc.want)
			continue
		}
		for i, e := range got {
			if text := e.Reason + ": " + e.Message; e.Type != lifecycle.EventNormal || !regexp.MustCompile(tc.want[i]).MatchString(text) {
				t.Errorf("%s: event %s %s, want %s", tc.image, e.Type, text, tc.want[i])
			}
		}
	}
}
