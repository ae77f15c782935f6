package apiserver

import (
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/kubeclient"
)

// LoadKubeconfig reads the current context of a kubeconfig file. Paths in it
// are relative to it. What it names besides (certificates, keys, tokens, exec
// plugins) is used when a connection is made, not here. The error names the
// file and what to do; it fits os.ErrNotExist where there is none.
func LoadKubeconfig(path string) (*rest.Config, error) { return kubeclient.Load(path) }
