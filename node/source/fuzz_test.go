package source

import (
	"encoding/json"
	"strings"
	"testing"

	"nodekit.dev/node/podactor"
)

// FuzzManifest feeds the file source whatever a file may hold. What it takes
// must be a valid pod with a name and UID that are safe to use in paths, and
// must come out the same when it is written and read again.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifest("web", "web:1")))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"../x"},"spec":{"containers":[{"name":"a","image":"b"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k := newTestKeeper(t, nil)
		take(t, k, "/m/a.yaml", string(data))
		pods, _ := changed(k)
		if len(pods) == 0 {
			if len(k.reported) == 0 {
				t.Fatal("refused without a word")
			}
			return
		}
		pod := pods[0]
		if podactor.CheckUID(string(pod.UID)) != nil || strings.Contains(pod.Name+pod.Namespace, "/") || !strings.HasSuffix(pod.Name, "-n") {
			t.Fatalf("name %q, namespace %q, UID %q", pod.Name, pod.Namespace, pod.UID)
		}
		if len(Validate(pod)) > 0 || len(pod.Spec.Containers) == 0 {
			t.Fatal("an invalid pod was taken")
		}
		again := pod.DeepCopy()
		Default(again)
		first, err1 := json.Marshal(pod)
		second, err2 := json.Marshal(again)
		if err1 != nil || err2 != nil || string(first) != string(second) {
			t.Fatalf("defaults are not idempotent: %v, %v", err1, err2)
		}
		d, err := decodePod(data)
		if err != nil {
			t.Fatal(err)
		}
		content, _ := contentHash(d.pod)
		canonical, _ := json.Marshal(d.pod)
		rewritten := string(canonical)
		if !strings.Contains(rewritten, `"kind":"Pod"`) {
			t.Fatalf("lost its kind: %s", rewritten)
		}
		d2, err := decodePod(canonical)
		if err != nil {
			t.Fatalf("%v: %s", err, rewritten)
		}
		if content2, _ := contentHash(d2.pod); content2 != content {
			t.Fatalf("content changed by rewriting: %s", rewritten)
		}
	})
}

func FuzzPodList(f *testing.F) {
	f.Add([]byte(podList(manifest("web", "web:1"), "null", "3")))
	f.Fuzz(func(t *testing.T, data []byte) {
		pods, errs, err := decodePods(data)
		if err == nil && len(pods) != len(errs) {
			t.Fatalf("%d pods, %d errors", len(pods), len(errs))
		}
		for i := range pods {
			if (pods[i].pod == nil) != (errs[i] != nil) {
				t.Fatalf("item %d: pod %v, error %v", i, pods[i].pod, errs[i])
			}
		}
	})
}
