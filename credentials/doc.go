// Package credentials will hold the credential-provider host, image pull
// records, node certificates and service account tokens. Until then images are
// pulled anonymously, or with what an embedder gives to images.Config.Auth.
// Nothing is here yet (docs/scope.md).
package credentials
