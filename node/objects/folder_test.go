package objects_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/objects"
	"nodekit.dev/node/objects/internal/apitest"
)

// logged keeps log lines.
type logged struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

type folderBench struct {
	t      *testing.T
	dir    string
	folder *objects.Folder
	log    *logged
}

func newFolderBench(t *testing.T, files map[string]string) *folderBench {
	t.Helper()
	b := &folderBench{t: t, dir: t.TempDir(), log: &logged{}}
	for name, text := range files {
		b.write(name, text)
	}
	var err error
	if b.folder, err = objects.NewFolder(b.dir, slog.New(slog.NewTextHandler(b.log, nil))); err != nil {
		t.Fatal(err)
	}
	apitest.Running(t, b.folder.Run)
	return b
}

func (b *folderBench) write(name, text string) {
	b.t.Helper()
	at := filepath.Join(b.dir, name)
	if err := os.WriteFile(at+"~", []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(at+"~", at); err != nil {
		b.t.Fatal(err)
	}
}

// value is what the folder says of a key of a Secret, or why not.
func (b *folderBench) value(uid types.UID, namespace, name, key string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	s, err := b.folder.Secret(ctx, uid, namespace, name)
	if err != nil {
		return err.Error()
	}
	return string(s.Data[key])
}

func (b *folderBench) want(namespace, name, key, want string) {
	b.t.Helper()
	if got := b.value("u1", namespace, name, key); got != want {
		b.t.Errorf("%s/%s: %q, want %q", namespace, name, got, want)
	}
}

func (b *folderBench) wantChange(uid types.UID) {
	b.t.Helper()
	select {
	case change := <-b.folder.Changes():
		if change.UID != uid {
			b.t.Errorf("changed: %s", change.UID)
		}
	case <-time.After(30 * time.Second):
		b.t.Fatal("no change was told")
	}
}

const dbSecret = `
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: shop}
stringData: {user: root}
data: {pass: c2VjcmV0}
`

func TestFolder(t *testing.T) {
	b := newFolderBench(t, map[string]string{
		"db.yaml": dbSecret + "---\n---\n" + `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: plain}, data: {k: dg==}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: conf, namespace: shop}, data: {k: v}}
`,
		"z.json": `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}, "stringData": {"user": "second"}}`,
	})
	b.want("shop", "db", "user", "root")
	b.want("shop", "db", "pass", "secret")
	b.want("default", "plain", "k", "v")
	b.want("shop", "none", "", `secret "none" not found`)
	if m, err := b.folder.ConfigMap(t.Context(), "u2", "shop", "conf"); err != nil || m.Data["k"] != "v" {
		t.Errorf("%v, %v", m, err)
	}
	if !strings.Contains(b.log.String(), "secret shop/db is in "+filepath.Join(b.dir, "db.yaml")+" too, which wins") {
		t.Errorf("the log does not tell of the double: %s", b.log)
	}
	b.write("db.yaml", strings.Replace(dbSecret, "root", "admin", 1))
	for range 2 { // u1's Secrets and u2's ConfigMap
		<-b.folder.Changes()
	}
	b.want("shop", "db", "user", "admin")
	b.want("default", "plain", "k", `secret "plain" not found`)
	if err := os.Remove(filepath.Join(b.dir, "db.yaml")); err != nil {
		t.Fatal(err)
	}
	b.wantChange("u1")
	b.want("shop", "db", "user", "second")
}

func TestFolderKeepsTheLastGoodObjects(t *testing.T) {
	b := newFolderBench(t, map[string]string{"db.yaml": dbSecret})
	b.want("shop", "db", "user", "root")
	for want, text := range map[string]string{
		"did not find expected":        "a: [",
		"want v1, ConfigMap or Secret": "apiVersion: apps/v1\nkind: Deployment\n",
		`kind \"Pod\": want ConfigMap`: "apiVersion: v1\nkind: Pod\n",
		`unknown field \"stringdata\"`: strings.Replace(dbSecret, "stringData", "stringdata", 1),
		`key \"../x\"`:                 strings.Replace(dbSecret, "user", `"../x"`, 1),
		"illegal base64":               strings.Replace(dbSecret, "c2VjcmV0", "'!!!'", 1),
		"metadata.name":                strings.Replace(dbSecret, "name: db", "name: D_B", 1),
		"at most 1048576 are possible": strings.Replace(dbSecret, "root", strings.Repeat("x", 1<<20), 1),
		"already set":                  strings.Replace(dbSecret, "user: root", "user: a, user: b", 1),
		"secret \\\"shop/db\\\"":       strings.Replace(dbSecret, "user", "us er", 1),
	} {
		b.write("db.yaml", text)
		// A second file shows when the first one was read.
		b.write("mark.yaml", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mark"}}`)
		deadline := time.Now().Add(20 * time.Second)
		tick := time.NewTicker(20 * time.Millisecond)
		for !strings.Contains(b.log.String(), want) {
			if time.Now().After(deadline) {
				t.Fatalf("the log does not say %q: %s", want, b.log)
			}
			<-tick.C
		}
		tick.Stop()
		b.want("shop", "db", "user", "root")
	}
	b.write("db.yaml", strings.Replace(dbSecret, "root", "mended", 1))
	b.wantChange("u1")
	b.want("shop", "db", "user", "mended")
	if !strings.Contains(b.log.String(), "objects can be read again") {
		t.Error("the log does not tell of the end")
	}
}

func TestFolderThatIsNotThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "objects")
	folder, err := objects.NewFolder(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	apitest.Running(t, folder.Run)
	b := &folderBench{t: t, dir: dir, folder: folder, log: &logged{}}
	b.want("shop", "db", "user", `secret "db" not found`)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("db.yaml", dbSecret)
	b.wantChange("u1")
	b.want("shop", "db", "user", "root")
	if _, err := objects.NewFolder("objects", nil); err == nil {
		t.Error("a relative path was accepted")
	}
}
