// Package observe watches a container runtime for the agent: it says which
// pods to look at again (hints), reads single pods, and keeps the runtime's
// own health.
//
//	o, err := observe.New(observe.DefaultConfig(), client) // runtime/cri fits Source
//	go o.Run(ctx)
//	for hint := range o.Hints() {
//		pod, err := o.Look(ctx, hint.UID) // "" in hint.UID: look at all pods
//	}
//
// Hints come from three places:
//
//	container events  at once, where the runtime has them; the stream is opened
//	                  again after a break, with a hint to look at all pods
//	relist            a list of all pods compared with the list before: each
//	                  60 s with events; without them 1 s after something
//	                  happened, up to 10 s while nothing does
//	health            when the runtime or its network becomes ready or not
//
// # Rules
//
//   - A hint carries no state and may be one too many: look, then decide.
//   - Hints are coalesced while the reader is busy, so a slow reader costs no
//     memory and holds nobody up. There is one reader.
//   - A pod whose look takes longer than Config.LookTimeout is quarantined:
//     looks for it fail at once with a *QuarantineError until that is over,
//     and a hint then says so. No other pod, nor the relist, waits for it.
//   - Run may be called once. Look, List, Hints and Status need no Run.
package observe
