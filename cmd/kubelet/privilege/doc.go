// Package privilege asks whether this process may do what a kubelet does. The
// agent only logs the answer and goes on, as the stock kubelet does:
//
//	if err := privilege.Check(); err != nil {
//		log.Error("Kubelet running with insufficient permissions", "err", err)
//	}
package privilege
