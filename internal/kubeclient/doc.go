// Package kubeclient is what the two users of client-go's transport share:
// kubeconfig files, read and written, and HTTP connections that belong to one
// agent, not to client-go's cache of the process.
//
//	config, err := kubeclient.Load("/etc/kubernetes/kubelet.conf")
//	conn, err := kubeclient.Connect(config, kubeclient.Options{ReadIdle: 30 * time.Second, PingTimeout: 15 * time.Second})
//	client := &http.Client{Transport: conn.RoundTripper}
//	defer conn.CloseIdle()
//
// All functions may be used concurrently; Connect reads files.
package kubeclient
