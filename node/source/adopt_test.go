package source

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/lifecycle"
	"nodekit.dev/runtime"
)

// runs is a pod of the runtime with one sandbox and the containers of a spec.
func runs(uid string, notes map[string]string, hashes map[string]string) runtime.Pod {
	pod := runtime.Pod{
		UID: uid, Namespace: "default", Name: "web-n",
		Sandboxes: []runtime.Sandbox{{ID: "s-" + uid, Ready: true, Annotations: notes}},
	}
	for name, hash := range hashes {
		pod.Containers = append(pod.Containers, runtime.Container{
			ID: name, Name: name, Annotations: map[string]string{runtime.AnnotationContainerHash: hash},
		})
	}
	return pod
}

func TestMatchRunning(t *testing.T) {
	file := map[string]string{runtime.AnnotationConfigSource: "file"}
	ours := map[string]string{runtime.AnnotationConfigSource: "file", AnnotationContent: "c1"}
	edited := map[string]string{runtime.AnnotationConfigSource: "file", AnnotationContent: "c0"}
	main := map[string]string{"main": "h1"}
	dead := runs("dead", ours, main)
	dead.Sandboxes[0].Ready = false
	other := runs("other", ours, main)
	other.Name = "web-m"

	want := AdoptRequest{Namespace: "default", Name: "web-n", Source: "file", Content: "c1", Containers: map[string]string{"main": "h1", "init": "h0"}, Foreign: true}
	known := want
	known.Foreign = false
	cases := []struct {
		name string
		req  AdoptRequest
		pods []runtime.Pod
		want string
	}{
		{"nothing runs", want, nil, ""},
		{"made by an earlier agent", known, []runtime.Pod{runs("u1", ours, main)}, "u1"},
		{"content outranks containers", known, []runtime.Pod{runs("u1", ours, map[string]string{"main": "x"})}, "u1"},
		{"edited while the agent was down", want, []runtime.Pod{runs("u1", edited, main)}, ""},
		{"made by the stock kubelet", want, []runtime.Pod{runs("u1", file, main)}, "u1"},
		{"its init container is not gone yet", want, []runtime.Pod{runs("u1", file, map[string]string{"main": "h1", "init": "h0"})}, "u1"},
		{"another image", want, []runtime.Pod{runs("u1", file, map[string]string{"main": "x"})}, ""},
		{"a container more", want, []runtime.Pod{runs("u1", file, map[string]string{"main": "h1", "old": "h1"})}, ""},
		{"no container at all", want, []runtime.Pod{runs("u1", file, nil)}, ""},
		{"an edit of a pod that was adopted", known, []runtime.Pod{runs("u1", file, main)}, ""},
		{"another source", want, []runtime.Pod{runs("u1", map[string]string{runtime.AnnotationConfigSource: "api"}, main)}, ""},
		{"sandbox is dead", want, []runtime.Pod{dead}, ""},
		{"another name", want, []runtime.Pod{other}, ""},
		{"the very content before a foreign one", want, []runtime.Pod{runs("u1", file, main), runs("u2", ours, main)}, "u2"},
	}
	for _, c := range cases {
		if got := MatchRunning(c.req, c.pods); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func newTestKeeper(t *testing.T, adopter Adopter) *keeper {
	cfg, err := Config{NodeName: "n", Adopter: adopter}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return newKeeper(cfg, "file")
}

func take(t *testing.T, k *keeper, key, content string) {
	t.Helper()
	o := origin{source: "file", location: key, suffix: true, tolerates: true}
	if err := k.manifest(t.Context(), key, []byte(content), o); err != nil {
		t.Fatal(err)
	}
}

// A pod of the stock kubelet is adopted; when its manifest is edited later,
// the edit is not lost to adopting it once more.
func changed(k *keeper) ([]*corev1.Pod, bool) {
	update, changed := k.changed()
	return update.Pods, changed
}

func TestAdoptedPodIsReplacedByAnEdit(t *testing.T) {
	d, err := decodePod([]byte(manifest("web", "web:1")))
	if err != nil {
		t.Fatal(err)
	}
	hash := lifecycle.ContainerHash(&d.pod.Spec.Containers[0])
	list := func(context.Context) ([]runtime.Pod, error) {
		return []runtime.Pod{runs("stock", map[string]string{runtime.AnnotationConfigSource: "file"}, map[string]string{"main": hash})}, nil
	}
	k := newTestKeeper(t, AdoptFrom(list))
	take(t, k, "/m/web.yaml", manifest("web", "web:1"))
	pods, _ := changed(k)
	if pods[0].UID != "stock" {
		t.Fatalf("UID %s", pods[0].UID)
	}
	edit := manifest("web", "web:1") + "    env: [{name: A, value: b}]\n"
	take(t, k, "/m/web.yaml", edit)
	pods, isNew := changed(k)
	if !isNew || pods[0].UID == "stock" || len(pods[0].Spec.Containers[0].Env) != 1 {
		t.Fatalf("edit: UID %s, changed %v", pods[0].UID, isNew)
	}
}

// A manifest that moved to another file names the same pod.
func TestMovedManifestKeepsItsPod(t *testing.T) {
	var on []runtime.Pod
	k := newTestKeeper(t, AdoptFrom(func(context.Context) ([]runtime.Pod, error) { return on, nil }))
	take(t, k, "/m/a.yaml", manifest("web", "web:1"))
	pods, _ := changed(k)
	on = []runtime.Pod{runs(string(pods[0].UID), pods[0].Annotations, nil)}
	k.keep([]string{"/m/b.yaml"})
	take(t, k, "/m/b.yaml", manifest("web", "web:1"))
	moved, _ := changed(k)
	if moved[0].UID != pods[0].UID {
		t.Fatalf("UID %s after %s", moved[0].UID, pods[0].UID)
	}
}

func TestUIDDependsOnContentNodeSourceAndPlace(t *testing.T) {
	d, err := decodePod([]byte(manifest("web", "web:1")))
	if err != nil {
		t.Fatal(err)
	}
	content, err := contentHash(d.pod)
	if err != nil {
		t.Fatal(err)
	}
	base := origin{source: "file", location: "/m/a.yaml"}
	uids := map[string]bool{}
	for _, uid := range []string{
		string(ownUID(content, "n", base)),
		string(ownUID(content+"x", "n", base)),
		string(ownUID(content, "m", base)),
		string(ownUID(content, "n", origin{source: "http", location: "/m/a.yaml"})),
		string(ownUID(content, "n", origin{source: "file", location: "/m/b.yaml"})),
	} {
		uids[uid] = true
	}
	if len(uids) != 5 {
		t.Fatalf("%d different UIDs of 5", len(uids))
	}
	// Written down, since a new hash would restart every static pod.
	if got := ownUID(content, "n", base); got != "a3bb60e6500eea9992ea856991feaaa9" {
		t.Fatalf("the hash changed: %s", got)
	}
}

func TestListErrorOfTheRuntimeIsPassedOn(t *testing.T) {
	down := errors.New("runtime is down")
	a := AdoptFrom(func(context.Context) ([]runtime.Pod, error) { return nil, down })
	if _, err := a.Adopt(t.Context(), AdoptRequest{}); !errors.Is(err, down) {
		t.Fatal(err)
	}
}

func TestPodWithoutNameIsNamedByItsUID(t *testing.T) {
	k := newTestKeeper(t, nil)
	take(t, k, "/m/a.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: b}]}\n")
	pods, _ := changed(k)
	if len(pods) != 1 || pods[0].Name != string(pods[0].UID)+"-n" {
		t.Fatalf("pods %v, problems %+v", pods, k.reported)
	}
}

func TestManifestCanNotForgeWhatTheSourceSays(t *testing.T) {
	k := newTestKeeper(t, nil)
	take(t, k, "/m/a.yaml", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","deletionTimestamp":"2020-01-01T00:00:00Z",
		"annotations":{"kubernetes.io/config.source":"api","kubernetes.io/config.mirror":"x","kubernetes.io/config.hash":"y","mine":"kept"}},
		"spec":{"nodeName":"elsewhere","containers":[{"name":"a","image":"b"}]},"status":{"phase":"Succeeded"}}`)
	pods, _ := changed(k)
	pod := pods[0]
	notes := pod.Annotations
	if notes[runtime.AnnotationConfigSource] != "file" || notes[runtime.AnnotationConfigHash] != string(pod.UID) || notes["mine"] != "kept" {
		t.Errorf("annotations %v", notes)
	}
	if _, mirror := notes[runtime.AnnotationConfigMirror]; mirror || pod.DeletionTimestamp != nil || pod.Spec.NodeName != "n" || pod.Status.Phase != "Pending" {
		t.Errorf("pod %+v", pod)
	}
}
