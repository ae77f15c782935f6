package source_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"nodekit.dev/node"
	"nodekit.dev/node/source"
)

func ExampleNewDir() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(`
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: nginx
    image: nginx
`), 0o600)

	manifests, err := source.NewDir(source.DirConfig{Config: source.Config{NodeName: "Edge-7"}, Path: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	updates := make(chan node.SourceUpdate)
	ended := make(chan error)
	go func() { ended <- manifests.Run(ctx, updates) }()

	for _, pod := range (<-updates).Pods {
		fmt.Println(pod.Namespace, pod.Name, pod.Spec.Containers[0].ImagePullPolicy)
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// default web-edge-7 Always
	// context canceled
}
