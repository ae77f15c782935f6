// Package follow keeps copies of API objects up to date by watching them: a
// single object by its name, as the Node authorizer allows it for Secrets and
// ConfigMaps ([One]), or all objects of a selection ([Many]).
//
//	one := follow.NewOne(follow.Options[*corev1.Secret]{
//		Source: follow.Source{Client: core, Resource: "secrets", Namespace: "shop", Name: "db"},
//		New:    func() *corev1.Secret { return &corev1.Secret{} },
//	})
//	go one.Run(ctx)
//	secret, err := one.Get(ctx) // waits for the first answer only
//
// Rules:
//
//   - Run lives until its context ends; whatever fails is tried again, with
//     back-off and jitter. It has no error to return.
//   - Get never asks the API server itself: it waits until there is an answer,
//     and after that returns the newest one at once, also while the API server
//     is away.
//   - A missing object is an error that answers NotFound() bool; a server that
//     can not be asked is one that answers Unreachable() bool.
//   - What is returned is shared: read only.
package follow
