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
	return load("kubeconfig", path, "write it, or give a bootstrap kubeconfig so that the agent writes it")
}

// LoadBootstrap is Load for the file that a node asks for its first certificate
// with.
func LoadBootstrap(path string) (*rest.Config, error) {
	return load("bootstrap kubeconfig", path, "write it, with credentials that may ask for a node's certificate")
}

func load(what, path, hint string) (*rest.Config, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s %s does not exist: %s: %w", what, path, hint, err)
	case err != nil:
		return nil, fmt.Errorf("%s %s can not be read: let the agent's user read it: %w", what, path, err)
	}
	loaded, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("%s %s is not valid: mend or replace it: %w", what, path, err)
	}
	if len(loaded.Clusters) == 0 {
		return nil, fmt.Errorf("%s %s names no cluster: add one with the server's URL, a user, and a context of both", what, path)
	}
	for _, cluster := range loaded.Clusters {
		cluster.LocationOfOrigin = path
	}
	for _, user := range loaded.AuthInfos {
		user.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(loaded); err != nil {
		return nil, fmt.Errorf("%s %s: make its paths absolute: %w", what, path, err)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*loaded, loaded.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s %s, context %q: check its current-context, cluster, user and the files that they name: %w", what, path, loaded.CurrentContext, err)
	}
	return config, nil
}
