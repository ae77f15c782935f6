// Package authn knows who talks to the node's API: clients with a certificate
// of the cluster's authority, and those with a token that the API server knows.
//
//	cas, err := authn.NewClientCAs(authn.CAConfig{File: "/etc/kubernetes/pki/ca.crt", Reload: true}, log)
//	err = cas.Load() // and later cas.Run(ctx), as a task
//	tokens, err := authn.NewTokens(authn.DefaultTokens(), authn.Reviews(client.Authentication(), log))
//	authenticators := []node.Ordered[server.Authenticator]{
//		{Name: "x509", Value: authn.X509(cas)}, {Name: "token", After: []string{"x509"}, Value: tokens},
//	}
//
// Rules for callers: run [ClientCAs.Run] for as long as the server runs, or a
// new authority is not seen. A Tokens keeps answers, so make one per agent.
// Tokens are kept as keyed hashes only.
package authn
