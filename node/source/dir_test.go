package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/runtime"
)

// bed is a directory source over a directory of its own. The period is an
// hour: what happens, happens by file events.
type bed struct {
	*running
	told *told
	dir  string
}

func newBed(t *testing.T, adopter Adopter, files map[string]string) *bed {
	t.Helper()
	b := &bed{told: &told{}, dir: t.TempDir()}
	for name, content := range files {
		b.write(t, name, content)
	}
	d, err := NewDir(DirConfig{
		Config: Config{NodeName: "Edge-7", Adopter: adopter, Observer: b.told.observer()},
		Path:   b.dir, Period: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.running = run(t, d)
	return b
}

func (b *bed) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestDirAddChangeDelete(t *testing.T) {
	b := newBed(t, nil, map[string]string{"web.yaml": manifest("web", "web:1")})
	first := b.next()["web-edge-7"]
	if first == nil {
		t.Fatal("no pod web-edge-7")
	}
	for key, want := range map[string]string{
		runtime.AnnotationConfigSource: "file",
		runtime.AnnotationConfigHash:   string(first.UID),
	} {
		if got := first.Annotations[key]; got != want {
			t.Errorf("annotation %s: %q, want %q", key, got, want)
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, first.Annotations[runtime.AnnotationConfigSeen]); err != nil {
		t.Error(err)
	}
	if first.Namespace != "default" || first.Spec.NodeName != "Edge-7" || len(first.UID) != 32 {
		t.Errorf("namespace %q, node %q, UID %q", first.Namespace, first.Spec.NodeName, first.UID)
	}
	if want := []corev1.Toleration{{Operator: "Exists", Effect: "NoExecute"}}; len(first.Spec.Tolerations) != 1 || first.Spec.Tolerations[0] != want[0] {
		t.Errorf("tolerations %v", first.Spec.Tolerations)
	}

	b.write(t, "web.yaml", manifest("web", "web:2"))
	second := b.next()["web-edge-7"]
	if second.UID == first.UID || second.Spec.Containers[0].Image != "web:2" {
		t.Fatalf("edit: UID %s after %s, image %s", second.UID, first.UID, second.Spec.Containers[0].Image)
	}
	b.write(t, "db.json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"db","namespace":"data"},"spec":{"containers":[{"name":"db","image":"db"}]}}`)
	both := b.next()
	if len(both) != 2 || both["web-edge-7"] != second || both["db-edge-7"].Namespace != "data" {
		t.Fatalf("after adding: %v", both)
	}
	b.remove(t, "web.yaml")
	if left := b.next(); len(left) != 1 || left["db-edge-7"] == nil {
		t.Fatalf("after removing: %v", left)
	}
}

func TestDirKeepsTheLastGoodPod(t *testing.T) {
	b := newBed(t, nil, map[string]string{"web.yaml": manifest("web", "web:1"), "other.yaml": manifest("other", "o:1")})
	good := b.next()["web-edge-7"]
	for _, c := range []struct {
		content string
		reason  Reason
		words   string
	}{
		{"apiVersion: v1\nkind: Pod\nmetad", ReasonInvalid, "could not find expected"},
		{"", ReasonInvalid, "empty"},
		{"# only a comment\n", ReasonInvalid, "empty"},
		{manifest("web", "web:1") + "---\n" + manifest("two", "t:1"), ReasonInvalid, "holds 2 documents"},
		{strings.Replace(manifest("web", "web:1"), "kind: Pod", "kind: Deployment", 1), ReasonInvalid, `kind "Deployment"`},
		{manifest("Web_1", "web:1"), ReasonInvalid, "metadata.name"},
		{manifest("web", `""`), ReasonInvalid, "spec.containers[0].image"},
		{strings.Repeat("#", MaxManifest+1), ReasonTooLarge, "10 MiB"},
	} {
		b.write(t, "web.yaml", c.content)
		b.quiet(c.words, func() bool { return b.told.has(c.reason, c.words) })
	}
	b.told.mu.Lock()
	for _, p := range b.told.problems {
		if p.Pod != good || p.Location != filepath.Join(b.dir, "web.yaml") || p.Source != "file" {
			t.Errorf("problem %+v", p)
		}
	}
	b.told.mu.Unlock()
	// The other pod is not held up by it.
	b.write(t, "other.yaml", manifest("other", "o:2"))
	pods := b.next()
	if pods["web-edge-7"] != good || pods["other-edge-7"].Spec.Containers[0].Image != "o:2" {
		t.Fatalf("pods %v", pods)
	}
	b.write(t, "web.yaml", manifest("web", "web:2"))
	if pods := b.next(); pods["web-edge-7"].Spec.Containers[0].Image != "web:2" {
		t.Fatal("did not recover")
	}
	if problems, mended := b.told.counts(); mended == 0 || problems < 7 {
		t.Fatalf("%d problems, %d mended", problems, mended)
	}
}

func TestDirIgnoresTemporaryFilesAndDirectories(t *testing.T) {
	files := map[string]string{"web.yaml": manifest("web", "web:1")}
	for _, name := range []string{".web.yaml.swp", "web.yaml~", "x.swp", ".hidden", "#web.yaml#"} {
		files[name] = "not: [a pod"
	}
	b := newBed(t, nil, files)
	if pods := b.next(); len(pods) != 1 {
		t.Fatalf("pods %v", pods)
	}
	if err := os.Mkdir(filepath.Join(b.dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if u := b.nextUpdate(); len(u.Pods) != 1 || !u.Unclear || !b.told.has(ReasonUnreadable, "not a regular file") {
		t.Fatalf("with a pipe: unclear %v, pods %v", u.Unclear, byName(u))
	}
	if problems, _ := b.told.counts(); problems != 1 {
		t.Fatalf("problems %+v", b.told.problems)
	}
}

func TestDirDuplicatesFirstFileWins(t *testing.T) {
	b := newBed(t, nil, map[string]string{
		"a.yaml": manifest("web", "web:a"),
		"b.yaml": manifest("web", "web:b"),
		"c.yaml": strings.Replace(manifest("one", "x"), "name: one", "name: one\n  uid: same", 1),
		"d.yaml": strings.Replace(manifest("two", "x"), "name: two", "name: two\n  uid: same", 1),
	})
	pods := b.next()
	if len(pods) != 2 || pods["web-edge-7"].Spec.Containers[0].Image != "web:a" || pods["one-edge-7"] == nil {
		t.Fatalf("pods %v", pods)
	}
	if !b.told.has(ReasonDuplicate, "pod default/web-edge-7 is in "+b.dir+"/a.yaml") || !b.told.has(ReasonDuplicate, "UID same") {
		t.Fatalf("problems %+v", b.told.problems)
	}
	b.remove(t, "a.yaml")
	if pods := b.next(); pods["web-edge-7"].Spec.Containers[0].Image != "web:b" {
		t.Fatal("the second did not follow")
	}
}

// A burst of edits, written the way editors do it, ends with the last version.
func TestDirConvergesAfterRapidEdits(t *testing.T) {
	b := newBed(t, nil, nil)
	if pods := b.next(); len(pods) != 0 {
		t.Fatalf("pods %v", pods)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 40 {
			temp := filepath.Join(b.dir, ".new")
			content := manifest("web", "web:"+strings.Repeat("x", i+1))
			if os.WriteFile(temp, []byte(content), 0o600) != nil || os.Rename(temp, filepath.Join(b.dir, "web.yaml")) != nil {
				t.Error("write failed")
			}
		}
	}()
	want := "web:" + strings.Repeat("x", 40)
	for b.next()["web-edge-7"].Spec.Containers[0].Image != want {
	}
	<-ended
}

func TestDirUnknownFieldsAreToldAndIgnored(t *testing.T) {
	b := newBed(t, nil, map[string]string{
		"web.yaml": strings.Replace(manifest("web", "web:1"), "    image", "    imagePolicy: Always\n    image", 1),
		"dup.yaml": "kind: Pod\n" + manifest("dup", "web:1"),
	})
	if pods := b.next(); len(pods) != 2 {
		t.Fatalf("pods %v", pods)
	}
	if !b.told.has(ReasonUnknownFields, `unknown field "spec.containers[0].imagePolicy"`) || !b.told.has(ReasonUnknownFields, `"kind" already set`) {
		t.Fatalf("problems %+v", b.told.problems)
	}
}

func TestDirCommentsAndOrderChangeNothing(t *testing.T) {
	b := newBed(t, nil, map[string]string{"web.yaml": manifest("web", "web:1")})
	first := b.next()["web-edge-7"]
	b.write(t, "web.yaml", "# a comment\nkind: Pod\nspec:\n  containers: [{image: 'web:1', name: main}]\nmetadata: {name: web}\napiVersion: v1\n")
	b.write(t, "new.yaml", manifest("new", "n:1"))
	if got := b.next(); got["web-edge-7"] != first {
		t.Fatal("the pod was made anew")
	}
}

func TestDirFixedUIDStaysOverEdits(t *testing.T) {
	fixed := strings.Replace(manifest("web", "web:1"), "name: web", "name: web\n  uid: my-uid", 1)
	b := newBed(t, nil, map[string]string{"web.yaml": fixed})
	first := b.next()["web-edge-7"]
	b.write(t, "web.yaml", strings.Replace(fixed, "web:1", "web:2", 1))
	second := b.next()["web-edge-7"]
	if first.UID != "my-uid" || second.UID != "my-uid" || first == second {
		t.Fatalf("UIDs %s, %s", first.UID, second.UID)
	}
	if a, b := first.Annotations[runtime.AnnotationConfigSeen], second.Annotations[runtime.AnnotationConfigSeen]; a != b {
		t.Fatalf("seen %s, then %s", a, b)
	}
}

func TestDirThatComesGoesAndComesBack(t *testing.T) {
	b := &bed{told: &told{}, dir: filepath.Join(t.TempDir(), "manifests")}
	d, err := NewDir(DirConfig{Config: Config{NodeName: "n", Observer: b.told.observer()}, Path: b.dir, Period: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	b.running = run(t, d)
	if pods := b.next(); len(pods) != 0 {
		t.Fatalf("pods %v", pods)
	}
	for range 2 {
		staged := b.dir + ".staged"
		if err := os.Mkdir(staged, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(staged, "web.yaml"), []byte(manifest("web", "w")), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(staged, b.dir); err != nil {
			t.Fatal(err)
		}
		if pods := b.next(); len(pods) != 1 {
			t.Fatalf("pods %v", pods)
		}
		// A change inside is seen too: the new directory is watched.
		b.write(t, "two.yaml", manifest("two", "w"))
		if pods := b.next(); len(pods) != 2 {
			t.Fatalf("pods %v", pods)
		}
		if err := os.Rename(b.dir, b.dir+".gone"); err != nil {
			t.Fatal(err)
		}
		if pods := b.next(); len(pods) != 0 {
			t.Fatalf("pods %v", pods)
		}
		if err := os.RemoveAll(b.dir + ".gone"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDirOfOneFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pod.yaml")
	for name, content := range map[string]string{"pod.yaml": manifest("web", "w:1"), "other.yaml": manifest("other", "w")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := NewDir(DirConfig{Config: Config{NodeName: "n"}, Path: path, Period: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, d)
	if pods := r.next(); len(pods) != 1 || pods["web-n"] == nil {
		t.Fatalf("pods %v", pods)
	}
	if err := os.WriteFile(path, []byte(manifest("web", "w:2")), 0o600); err != nil {
		t.Fatal(err)
	}
	if pods := r.next(); pods["web-n"].Spec.Containers[0].Image != "w:2" {
		t.Fatalf("pods %v", pods)
	}
}

func TestDirScanFindsWhatNoEventTold(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "real.yaml")
	dir := t.TempDir()
	if err := os.WriteFile(outside, []byte(manifest("web", "w:1")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	d, err := NewDir(DirConfig{Config: Config{NodeName: "n"}, Path: dir, Period: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, d)
	if pods := r.next(); len(pods) != 1 {
		t.Fatalf("pods %v", pods)
	}
	if err := os.WriteFile(outside, []byte(manifest("web", "w:2")), 0o600); err != nil {
		t.Fatal(err)
	}
	for r.next()["web-n"].Spec.Containers[0].Image != "w:2" { // a half-written one may come first
	}
}

// Nothing may be sent before it is known what runs: the node would take the
// running pods for unwanted ones.
func TestDirWaitsForTheAdopter(t *testing.T) {
	var asked atomic.Int32
	b := newBed(t, adoptFunc(func(context.Context, AdoptRequest) (string, error) {
		if asked.Add(1) == 1 {
			return "", errors.New("runtime is starting")
		}
		return "stock-uid", nil
	}), map[string]string{"web.yaml": manifest("web", "web:1")})
	pods := b.next() // after 1 s
	if pods["web-edge-7"].UID != "stock-uid" {
		t.Fatalf("UID %s", pods["web-edge-7"].UID)
	}
	if _, mended := b.told.counts(); !b.told.has(ReasonNotAdopted, "runtime is starting") || mended != 1 {
		t.Fatalf("problems %+v", b.told.problems)
	}
	// The adopted pod keeps its UID while its content does, and asks no more.
	b.write(t, "web.yaml", manifest("web", "web:1")+"# comment\n")
	b.write(t, "new.yaml", strings.Replace(manifest("new", "x"), "name: new", "name: new\n  uid: u", 1))
	if got := b.next(); got["web-edge-7"] != pods["web-edge-7"] || asked.Load() != 2 {
		t.Fatalf("asked %d times", asked.Load())
	}
}

type adoptFunc func(context.Context, AdoptRequest) (string, error)

func (f adoptFunc) Adopt(ctx context.Context, r AdoptRequest) (string, error) { return f(ctx, r) }

func TestNewDirRefuses(t *testing.T) {
	for _, cfg := range []DirConfig{
		{Path: "/x"},
		{Config: Config{NodeName: "n"}, Path: "relative"},
		{Config: Config{NodeName: "n"}, Path: "/x", Period: -1},
	} {
		if _, err := NewDir(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

func TestDirIsUnclearWhileAManifestWasNeverUnderstood(t *testing.T) {
	for name, bad := range map[string]string{
		"torn":     "apiVersion: v1\nkind: Pod\nmetad",
		"invalid":  manifest("web", `""`),
		"oversize": strings.Repeat("#", MaxManifest+1),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil, map[string]string{"web.yaml": bad, "other.yaml": manifest("other", "o:1")})
			if u := b.nextUpdate(); !u.Unclear || len(u.Pods) != 1 {
				t.Fatalf("unclear %v, pods %v", u.Unclear, byName(u))
			}
			b.write(t, "web.yaml", manifest("web", "web:1"))
			if u := b.nextUpdate(); u.Unclear || len(u.Pods) != 2 {
				t.Fatalf("mended: unclear %v, pods %v", u.Unclear, byName(u))
			}
			b.write(t, "web.yaml", bad) // its last good content is known now
			b.quiet("the problem", func() bool { n, _ := b.told.counts(); return n > 1 })
			b.write(t, "more.yaml", bad)
			if u := b.nextUpdate(); !u.Unclear || len(u.Pods) != 2 {
				t.Fatalf("another one: unclear %v, pods %v", u.Unclear, byName(u))
			}
			b.remove(t, "more.yaml")
			if u := b.nextUpdate(); u.Unclear || len(u.Pods) != 2 {
				t.Fatalf("removed: unclear %v, pods %v", u.Unclear, byName(u))
			}
			if err := os.Symlink("/nowhere/yet", filepath.Join(b.dir, "more.yaml")); err != nil {
				t.Fatal(err)
			}
			if u := b.nextUpdate(); !u.Unclear || len(u.Pods) != 2 {
				t.Fatalf("a link to nothing: unclear %v, pods %v", u.Unclear, byName(u))
			}
			b.remove(t, "more.yaml")
			if u := b.nextUpdate(); u.Unclear || len(u.Pods) != 2 {
				t.Fatalf("removed: unclear %v, pods %v", u.Unclear, byName(u))
			}
		})
	}
}

func TestDirAsksTheRuntimeOncePerReading(t *testing.T) {
	var lists atomic.Int32
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		files[name+".yaml"] = manifest(name, "i:1")
	}
	b := newBed(t, AdoptFrom(func(context.Context) ([]runtime.Pod, error) {
		lists.Add(1)
		return nil, nil
	}), files)
	if pods := b.next(); len(pods) != 4 {
		t.Fatalf("pods %v", pods)
	}
	if n := lists.Load(); n != 1 {
		t.Errorf("%d lists for the first reading", n)
	}
	b.write(t, "a.yaml", manifest("a", "i:2"))
	b.next()
	if n := lists.Load(); n != 2 {
		t.Errorf("%d lists after an edit, want one more", n)
	}
}
