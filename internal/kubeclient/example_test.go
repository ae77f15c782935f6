package kubeclient_test

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient"
)

func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	pem := filepath.Join(dir, "kubelet-client-current.pem")
	_ = os.WriteFile(pem, nil, 0o600)

	path := filepath.Join(dir, "kubelet.conf")
	fmt.Println(kubeclient.Write(path, &rest.Config{Host: "https://10.0.0.1:6443"}, pem))
	config, err := kubeclient.Load(path)
	fmt.Println(config.Host, filepath.Base(config.CertFile), err)
	// Output:
	// <nil>
	// https://10.0.0.1:6443 kubelet-client-current.pem <nil>
}
