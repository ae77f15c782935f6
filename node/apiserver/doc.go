// Package apiserver is the agent's connection to the API server: one place
// where requests wait their turn, and where connections are made, found dead
// and replaced.
//
//	rest, err := apiserver.LoadKubeconfig("/etc/kubernetes/kubelet.conf")
//	cfg := apiserver.Default()
//	cfg.REST = rest
//	cfg.HTTP2, err = apiserver.HTTP2FromEnv(os.Getenv)
//	client, err := apiserver.New(cfg, log)
//	go client.Run(ctx)
//
//	pods := client.Lane(apiserver.LanePodStatus).Core()
//	ctx = apiserver.Context(ctx, log) // once, where the agent's Run begins
//	err = pods.Patch(types.StrategicMergePatchType).Resource("pods")...Do(ctx).Error()
//
// The way of a request:
//
//	rest.Interface ──▶ lane: a token, by priority ──▶ credentials there? ──▶ connection
//	                                                  (waits for them)
//
// Rules:
//
//   - A part takes a rest.Interface of the lane that fits what it does, or
//     declares an interface of its own; it never imports this package.
//   - Options are given with VersionedParams(&opts, metav1.ParameterCodec),
//     which needs no scheme.
//   - Every request carries a context that ends: with an API server that is
//     away, a request waits until then.
//   - New touches nothing. Files that a kubeconfig names (tokens, keys,
//     authorities) are read when the first request is made, and again until
//     they can be read; so an agent starts without them.
//   - Logs of client-go go where Context says, and nowhere else.
//
// LaneLease and LaneNodeStatus have connections of their own. They carry
// nothing that lives long, so that HeartbeatFailed can close them at once when
// a heartbeat was not answered, while watches stay: of the connections of the
// other lanes only those are closed that do not answer a request made for
// that, or a ping of HTTP/2 (ReadIdle, PingTimeout). Where packets vanish, the
// kernel gives a connection up 10 s after something was written to it
// (TCP_USER_TIMEOUT; not with HTTP2.Disabled), and the others are asked then.
package apiserver
