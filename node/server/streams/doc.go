// Package streams connects clients to the container runtime's streaming
// server, for exec, attach and port-forward. The client never learns where that
// is: no redirect is sent, and none is followed.
//
//	client                        here                        runtime
//	SPDY, WebSocket v1 to v4  ──▶ bytes passed on         ──▶ the same
//	WebSocket v5              ──▶ translated              ──▶ SPDY v4
//	WebSocket SPDY/3.1+...    ──▶ unwrapped               ──▶ SPDY
//
// A use, in the handler of a route:
//
//	proxy := streams.New(streams.Config{IdleTimeout: 4 * time.Hour, Translate: true}, log)
//	opts, err := streams.ParseOptions(r)
//	target, err := runtime.Exec(ctx, ...)    // an address that works once
//	proxy.Command(w, r, streams.Target{URL: target, Options: opts, Subresource: "exec"})
//
// Rules for callers: decide first who may do this. A call returns when both
// sides are done, and at the end of the request's context, which a server
// ends when it stops.
package streams
