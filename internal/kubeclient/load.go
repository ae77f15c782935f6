package kubeclient

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Load reads the current context of a kubeconfig file. Paths in it
// are relative to it. What it names besides (certificates, keys, tokens, exec
// plugins) is used when a connection is made, not here. The error names the
// file and what to do; it fits os.ErrNotExist where there is none.
func Load(path string) (*rest.Config, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("kubeconfig %s does not exist: write it, or give a bootstrap kubeconfig so that the agent writes it: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig %s can not be read: let the agent's user read it: %w", path, err)
	}
	loaded, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s is not valid: mend or replace it: %w", path, err)
	}
	if len(loaded.Clusters) == 0 {
		return nil, fmt.Errorf("kubeconfig %s names no cluster: add one with the server's URL, a user, and a context of both", path)
	}
	for _, cluster := range loaded.Clusters {
		cluster.LocationOfOrigin = path
	}
	for _, user := range loaded.AuthInfos {
		user.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(loaded); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: make its paths absolute: %w", path, err)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*loaded, loaded.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s, context %q: check its current-context, cluster, user and the files that they name: %w", path, loaded.CurrentContext, err)
	}
	return config, nil
}
