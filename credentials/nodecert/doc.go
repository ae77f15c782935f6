// Package nodecert keeps the node's certificates: the one it shows to the API
// server and the one its own HTTPS server shows. It asks for them by signing
// requests, replaces them before they expire, and stores them as the stock
// kubelet does, so that either takes over from the other.
//
//	certs, err := nodecert.New(nodecert.Config{
//		NodeName: "edge-7", Kubeconfig: "/etc/kubernetes/kubelet.conf",
//		BootstrapKubeconfig: "/etc/kubernetes/bootstrap-kubelet.conf", RotateCertificates: true,
//	}, nil, log)
//	endpoint, err := certs.Endpoint()           // where the API server is; reads files
//	certs.OnRotate(client.CloseAll)             // so that connections log in again
//	go certs.Run(ctx)
//	tlsConfig.GetClientCertificate = certs.Client
//	serving.GetCertificate = certs.Server
//
// What one certificate goes through ([decide] is a pure function of this):
//
//	none, expired, not what is wanted, 70-90 % of its life over
//	    │ a new key, kept on disk until it has a certificate
//	    ▼
//	asked ──▶ pending ──▶ issued ──▶ stored, in use
//	            └─ denied, failed, gone ──▶ a new key after a while
//
// Files, below Dir ("stock" paths and formats):
//
//	kubelet-client-current.pem  link to kubelet-client-DATE.pem, which holds certificate and key
//	kubelet-client.key.tmp      key of the request in flight, so that a restart asks nothing twice
//	kubelet-server-...          the same for serving, with serverTLSBootstrap
//	kubelet.crt, kubelet.key    self-signed, without serverTLSBootstrap and own files
//
// Rules:
//
//   - Run never gives up and never ends the process: a control plane that is
//     away, a request that nobody approves, a token that expired are logged
//     (once each) with what to do, and tried again. Bootstrap kubeconfig and
//     token are read anew for each try, so replacing the file is enough.
//   - A certificate file that is torn or expired is set aside or passed over
//     in favour of an older good one; then it is as if there were none.
//   - Client and Server never block and may be called concurrently.
package nodecert
