// Package iptables keeps the few chains that other programs expect a kubelet to
// make on the host, for IPv4 and IPv6:
//
//   - KUBE-IPTABLES-HINT in the table mangle, empty: containers that bring an
//     iptables of their own see from it whether the host uses the legacy or the
//     nft kind (k/k#109059). Which of them is whatever "iptables" and "ip6tables"
//     in PATH are.
//   - KUBE-FIREWALL in the table filter, IPv4 only: packets from outside to
//     127.0.0.0/8 are dropped.
//   - KUBE-KUBELET-CANARY in mangle, nat and filter: when it is gone, someone
//     flushed the tables, and all is made again.
//
// It is used so:
//
//	keeper, err := iptables.New(iptables.Default(), command.Runner{}, log)
//	go keeper.Run(ctx) // through internal/tasks
//
// Rules for callers: run one per host, and none where makeIPTablesUtilChains is
// false. A host without iptables is told of in one warning, and all else goes
// on. When Run ends it takes the canaries away and leaves the other chains: the
// next agent wants them.
package iptables
