// Package apimetrics measures what the agent has to do with the API server and
// with those who call the agent: requests in both directions, certificates, and
// how long it took to join the cluster.
//
//	client := apimetrics.NewClient()
//	apiserverConfig.Observer.Request = func(r apiserver.Request) {
//		client.Request(r.Method, r.Host, r.Code, r.Took)
//	}
//
// Its methods take plain values, so that it drags none of these parts along;
// node/wire and cmd/kubelet put them into the Observers. All types are safe for
// concurrent use.
package apimetrics
