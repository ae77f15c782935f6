package config_test

import (
	"fmt"
	"os"

	"nodekit.dev/cmd/kubelet/config"
)

func Example() {
	type Widget struct {
		Colour string `json:"colour"`
	}
	file, _ := os.CreateTemp("", "kubelet-*.yaml")
	defer os.Remove(file.Name())
	fmt.Fprint(file, `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/kubernetes/manifests
---
apiVersion: vendor.example/v1
kind: Widget
colour: blue
`)
	loader := config.NewLoader(config.Register[Widget]("vendor.example/v1", "Widget"))
	loaded, err := loader.Load(config.Files{Main: file.Name()})
	if err != nil {
		fmt.Println(err)
		return
	}
	widget, _ := config.Get[Widget](loaded)
	fmt.Println(loaded.Kubelet.StaticPodPath, loaded.Kubelet.FileCheckFrequency.Duration, widget.Colour)
	// Output: /etc/kubernetes/manifests 20s blue
}
