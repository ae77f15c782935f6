// Package events tells users what happens to pods and to the node, as Event
// objects of the API server.
//
//	recorder, err := events.New(cfg, client.Lane(apiserver.LaneEvents).Core())
//	parts.Events = recorder                                    // of the node: PodEvent
//	recorder.NodeEvent("Normal", "Starting", "Starting kubelet.")
//	go recorder.Run(ctx) // through internal/tasks
//
// The source, the names and the limits are the stock kubelet's: what happens
// again is counted on the Event that is there; ten messages that differ in
// nothing else become one event "(combined from similar events): ..."; one
// object may tell 25 things of a type, then one more every five minutes. The
// limit on all of them, eventRecordQPS and eventBurst, is the REST client's.
//
// An event after a quiet time waits half a second, so that what users wait for, the
// statuses of pods, goes to the API server before it.
//
// Rules for callers: PodEvent, NodeEvent and Event never block and may be called
// before Run and concurrently. While the API server is away the newest 1000
// things wait, each counted as often as it happened, for up to an hour, and keep
// the times at which they happened.
package events
