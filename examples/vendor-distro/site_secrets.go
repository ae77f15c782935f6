package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodekit.dev/node/nodefx"
	"nodekit.dev/volume/plugins"
)

// siteSecrets has the site's own credentials for pods that ask for them, and
// all other secrets from where they come anyway.
type siteSecrets struct {
	plugins.Secrets
	Site
}

func ownSecrets() nodefx.Option {
	return nodefx.Replace[plugins.Secrets](func(s Site, all plugins.Secrets) siteSecrets { return siteSecrets{all, s} })
}

// Secret implements plugins.Secrets.
func (g siteSecrets) Secret(ctx context.Context, uid types.UID, namespace, name string) (*corev1.Secret, error) {
	if name != "site" {
		return g.Secrets.Secret(ctx, uid, namespace, name)
	}
	return &corev1.Secret{Data: map[string][]byte{"username": []byte(g.Username)}}, nil
}
