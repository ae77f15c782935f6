// Package credentials is the root of what a node logs in with: its
// certificates (nodecert) and the service account tokens of its pods (token).
// The host of credential providers and the records of image pulls come with
// their issue; until then images are pulled anonymously, or with what an
// embedder gives to images.Config.Auth. Nothing is in the root itself yet
// (docs/scope.md).
package credentials
