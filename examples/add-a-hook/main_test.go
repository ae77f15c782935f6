package main

import (
	"os"
	"strings"
	"testing"

	"nodekit.dev/examples/internal/exampletest"
	"nodekit.dev/runtime/runtimetest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

const web = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers:
  - {name: app, image: registry.test/app:1}
`

func TestAddAHook(t *testing.T) {
	w := runtimetest.NewWorld(t, runtimetest.Config{})
	program := exampletest.Program(t, exampletest.Kubelet(t, w, web, "")...)
	program.Await(`"started" pod="web-node1" container="app"`)
	program.Stop()
	exampletest.Pod(t, w, "web-node1")
}

// TestReadme: what README.md shows is what was just run.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), "package main\n")
	if !strings.Contains(string(readme), "```go\npackage main\n"+code+"```") {
		t.Error("README.md shows another program than examples/add-a-hook/main.go; copy it there from \"package main\" on")
	}
}
