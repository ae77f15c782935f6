// Package probe checks containers (and anything else that answers HTTP, TCP,
// gRPC or a command) again and again, and says what changed. It is importable
// alone. The checks themselves are in its subpackages; checks.Default is the
// set of all.
//
//	m, err := probe.New(probe.Config{Checks: all})
//	go m.Run(ctx)
//	_, err = m.Watch(probe.Container{UID: "1", Name: "web", Host: "10.0.0.7", Readiness: &spec})
//	for state := range m.States() {
//		fmt.Println(state.Container, *state.Ready)
//	}
//
// # What is checked when
//
//	startup              from the start and its delay on, until it succeeds
//	liveness, readiness  at once when startup has succeeded, or from the start
//	                     on without one; not before their own delays are over
//	after a success      the next gap is shortened once, so that the checks of
//	                     many containers that start together spread over the period
//	after a failure      exactly a period later
//	after a restart      of the agent, with Config.Restored: at once, all within a second
//
// A check that takes longer than its period is followed by the next tick of its
// phase. There are never two checks of one probe at a time.
//
// # What counts
//
// Thresholds are of equal results in a row. A check that can not be made is
// tried three times at once, and then counts as nothing. When liveness or startup
// reaches its failure threshold the run is Unhealthy, and on hold until the
// container has another ID. [Manager.Stopping] keeps readiness only.
//
// # Cost
//
// One timer and one heap serve all probes; workers live as long as there is
// something due. A kind with a limit of its own ([Config].Limits) queues alone.
package probe
