package source

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodekit.dev/runtime"
)

func goPod(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func newChannel(t *testing.T) *Channel {
	t.Helper()
	c, err := NewChannel("firmware", Config{NodeName: "Edge-7"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChannelLastSetWins(t *testing.T) {
	c := newChannel(t)
	in := goPod("a", "x:1")
	for _, pods := range [][]*corev1.Pod{{goPod("early", "x:1")}, {in, goPod("b", "x:1")}} {
		if err := c.Set(pods); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, c)
	first := r.next()
	a := first["a"]
	if len(first) != 2 || a.Spec.RestartPolicy != "Always" || a.Spec.NodeName != "Edge-7" || a.Annotations[runtime.AnnotationConfigSource] != "firmware" {
		t.Fatalf("pods %v", first)
	}
	if in.UID != "" || in.Spec.RestartPolicy != "" || in.Annotations != nil {
		t.Fatal("the caller's pod was changed")
	}
	r.next() // the token of the Sets before Run
	if err := c.Set([]*corev1.Pod{goPod("a", "x:1"), goPod("b", "x:2")}); err != nil {
		t.Fatal(err)
	}
	second := r.next()
	if second["a"].UID != a.UID || second["b"].UID == first["b"].UID {
		t.Fatal("an unchanged pod got another UID, or a changed one kept its own")
	}
	if second["a"].Annotations[runtime.AnnotationConfigSeen] != a.Annotations[runtime.AnnotationConfigSeen] {
		t.Fatal("an unchanged pod was seen anew")
	}
	// A second Run (the agent started again) begins with what is set.
	r.stop()
	if again := run(t, c).next(); len(again) != 2 {
		t.Fatalf("pods %v", again)
	}
}

func TestChannelRefusesAsAWhole(t *testing.T) {
	c := newChannel(t)
	if err := c.Set([]*corev1.Pod{goPod("a", "x:1")}); err != nil {
		t.Fatal(err)
	}
	for words, pods := range map[string][]*corev1.Pod{
		"pod /b: spec.containers[0].image": {goPod("a", "x:2"), goPod("b", "")},
		"is there twice":                   {goPod("a", "x:1"), goPod("a", "x:2")},
	} {
		if err := c.Set(pods); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
	if pods := run(t, c).next(); len(pods) != 1 || pods["a"].Spec.Containers[0].Image != "x:1" {
		t.Fatalf("pods %v", pods)
	}
}

func TestNewChannelRefusesNames(t *testing.T) {
	for _, name := range []string{"", "file", "http", "api", "My Source"} {
		if _, err := NewChannel(name, Config{NodeName: "n"}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if _, err := NewChannel("x", Config{}); err == nil {
		t.Error("no node name")
	}
}
