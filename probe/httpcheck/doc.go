// Package httpcheck checks that an HTTP server answers a GET with a status from
// 200 to 399. It needs no probe manager:
//
//	checker := httpcheck.New(httpcheck.Config{})
//	got := checker.Check(ctx, httpcheck.Target{URL: at})
//	fmt.Println(got.Result, got.Output)
//
// For the httpGet handler of a pod, [TargetOf] makes the target.
//
// # What is asked
//
// One GET for each answer: no proxy, no compression, no connection that is used
// twice, and any certificate will do. Over TLS servers may choose HTTP/2.
// Redirects are followed on the same host name, ten at most; one to another host
// is the answer, and a Warning.
//
// # What comes back
//
//	200 to 299      Success; the output is the body, its first 10 KiB
//	300 to 399      Warning: "Probe terminated redirects, Response body: ..."
//	other statuses  Failure: "HTTP probe failed with statuscode: 503"
//	no answer       Failure: the error, such as `Get "http://10.0.0.7:80/": EOF`
//	no request      Err, for a URL that can not be one
//
// # Time and sockets
//
// A check ends when its context does, whatever the server does, and so do its
// dials, handshakes and connections. These are reset, not closed, so that no
// check leaves a socket in TIME_WAIT, neither here nor on a server of the same
// host.
package httpcheck
