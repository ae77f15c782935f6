// Package token gets service account tokens for pods from the API server and
// keeps them for as long as they are fresh.
//
//	tokens := token.New(client.Lane(apiserver.LaneRead).Core(), log)
//	t, err := tokens.Token(ctx, token.Request{
//		PodUID: pod.UID, PodName: pod.Name, Namespace: pod.Namespace,
//		ServiceAccount: "default", Audience: "vault", Expiration: time.Hour,
//	})
//	// write t.Value, and ask again at t.RefreshAt
//	tokens.Forget(pod.UID)
//
// A token is asked for again when 80 % of its life is over, or 24 hours. When
// that fails, the old one is returned while it is valid. Tokens are nowhere
// stored, and never logged.
//
// Rules: call Forget when a pod is gone. All methods may be called
// concurrently; calls for one token share one request. Nothing runs in the
// background.
package token
