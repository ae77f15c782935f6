package sim

// mutant is one bug to plant in node/lifecycle. Old occurs exactly once in the
// file; where it does not any more, the mutant has to be written anew.
type mutant struct {
	name     string
	file     string // in node/lifecycle
	old, new string
	breaks   string // what a pod would suffer
}

func mutants() []mutant {
	return []mutant{
		// The restart policy.
		{"OnFailure restarts successes", "restart.go", "return exit != 0", "return true",
			"a job that succeeded runs again and again"},
		{"failed init containers count as done", "init.go", "return c.end != nil && c.flight == nil && c.end.exit == 0", "return c.end != nil && c.flight == nil",
			"the application starts although its migration failed"},
		{"completed with work to do", "ending.go", "if c.end == nil || c.active() || d.restarts(c) {", "if c.end == nil || c.active() {",
			"a crashed container ends its pod although it is to be restarted"},
		{"restart of all does not start over", "restartall.go", "c.mem.Anew = true", "c.mem.Anew = false",
			"after a restart of all containers those that had completed do not run"},

		// Back-off.
		{"back-off does not grow", "restart.go", "return min(2*last, rules.BackoffMax)", "return last",
			"a container in a crash loop is restarted every ten seconds"},
		{"back-off is forgotten too soon", "restart.go", "case ran >= rules.BackoffReset:\n\t\treturn 0\n\tcase last <= 0:", "case ran >= rules.BackoffBase:\n\t\treturn 0\n\tcase last <= 0:",
			"a container that runs ten seconds before each crash gets no back-off"},
		{"back-off is lost with the memory", "restart.go", "return doubled(rules.BackoffBase, int(restarts)-1, rules.BackoffMax)", "return 0",
			"a restart of the agent restarts all crashed containers at once"},
		{"failures are tried again at once", "admitted.go", "\t\treturn soon\n\t}\n\treturn f.RetryAt", "\t\treturn soon\n\t}\n\treturn f.At",
			"a failing mount or pull is hammered"},
		{"news is not heard", "admitted.go", "informed := !news.IsZero() &&", "informed := news.IsZero() &&",
			"a pod whose ConfigMap has come waits for a minute"},
		{"news ends every back-off", "admitted.go", "return f.Kind == Mount ||", "return f.Kind != \"\" ||",
			"a ConfigMap that changes all the time makes pulls wear down a registry"},
		{"news from before the try counts", "admitted.go", "&& !news.Before(f.Began) &&", "&& !news.IsZero() &&",
			"a mount that fails is tried every second once there was any news"},
		{"hopeless failures are tried again", "do.go", "case failed && f.Fatal && !a.mustHappen():", "case failed && f.Fatal && a.mustHappen():",
			"an image with an impossible name is pulled for ever"},

		// Probes.
		{"a pod that ends is probed", "probes.go", "if d.mem.Phase >= Stopping || d.mem.Ending != nil {", "if d.mem.Phase > Cleaning {",
			"a liveness probe fails a container that was told to stop"},
		{"probes do not wait for the hook", "probes.go", " || c.mem.KillID == r.ID || d.hookOpen(c) {", " || c.mem.KillID == r.ID {",
			"a container is killed for what its postStart hook is still to do"},
		{"what is killed is probed", "probes.go", "|| c.stopping() || c.mem.KillID == r.ID ||", "||",
			"a container that ends is told to be unhealthy"},

		// Order.
		{"sidecars stop in order of start", "stop.go", "for i := len(sidecars) - 1; i >= 0; i-- {", "for i := range sidecars {",
			"a sidecar goes before those that were started after it"},
		{"sidecars stop with the others", "stop.go", "if waiting && !over {", "if waiting && over {",
			"the proxy goes before the application has drained"},
		{"sidecars do not wait for each other", "init.go", "if c.role == sidecarRole {\n\t\treturn d.started(c)", "if c.role == sidecarRole {\n\t\treturn c.live() != nil || d.started(c)",
			"what needs a sidecar starts before the sidecar has"},
		{"init counts in every sandbox", "container.go", "return slices.ContainsFunc(c.runs, func(r runtime.Container) bool { return r.SandboxID == sandboxID }) ||", "return len(c.runs) > 0 ||",
			"a new sandbox is not initialized"},
		{"hooks run after the stop", "stop.go", "if d.in.Seen.StoppingDone || d.pod == nil || !d.anyRunning() {", "if d.pod != nil {",
			"load balancers learn too late"},
		{"volumes go before the sandbox", "clean.go", "if !d.sandboxesEnded(leaves) || !d.lookedAgain() || !d.unmounted() ||", "if !d.unmounted() || !d.sandboxesEnded(leaves) || !d.lookedAgain() ||",
			"a volume is taken away under a sandbox"},
		{"mounts are not waited for", "volumes.go", "if mine[name] && (!d.in.Seen.Mounted[name] || d.busy(KeyVolume(name))) {", "if mine[name] && d.busy(KeyVolume(name)) {",
			"a container starts on an empty directory"},
		{"cgroup is not waited for", "sandbox.go", "if !d.cgroupReady() || d.volumeIsFar() {", "if d.volumeIsFar() {",
			"the sandbox starts outside of its limits"},
		{"far volumes hold a sandbox", "sandbox.go", "if !d.cgroupReady() || d.volumeIsFar() {", "if !d.cgroupReady() {",
			"a pod that waits for an attach holds an address"},
		{"images of this plan count", "images.go", "pulling := d.busy(KeyImage(c.name)) || d.planned(KeyImage(c.name))", "pulling := d.busy(KeyImage(c.name))",
			"a restart uses the old image while the new one is pulled"},
		{"no network is fine", "sandbox.go", "if !d.in.Seen.NetworkReady && !d.pod.Spec.HostNetwork {", "if false {",
			"sandboxes fail one after the other until the network is up"},
		{"later counts as admitted", "ending.go", "case d.in.Seen.Admission.Verdict == VerdictAdmit:", "case d.in.Seen.Admission.Verdict != VerdictNone:",
			"a pod starts without its devices"},

		// What is in flight.
		{"busy keys are taken", "do.go", "if d.busy(a.Key) || d.planned(a.Key) ||", "if d.planned(a.Key) ||",
			"a second stop is sent while the first runs"},
		{"cleaning while starting", "ending.go", "if len(d.in.Busy) == 0 && !d.anyActive() {", "if !d.anyRunning() {",
			"a start that wins late runs in a pod that is being taken down"},
		{"sandbox ends over containers", "sandbox.go", "if d.activeIn(s.ID) {", "if false {",
			"containers are killed without their grace"},
		{"dead sandboxes are not stopped", "clean.go", "case s.Ready || !d.mem.StoppedSandboxes[s.ID]:", "case s.Ready:",
			"the network of a sandbox that died leaks"},
		{"unmounts are not waited for", "clean.go", "d.try(Action{Kind: Unmount, Key: KeyVolume(name), Volume: name})\n\t\t\tdone = false", "d.try(Action{Kind: Unmount, Key: KeyVolume(name), Volume: name})",
			"the pod's directory is removed through a mount"},

		// What is remembered, and what is not.
		{"phase is worked out anew", "decide.go", "d.chooseEnding()", "d.chooseEnding()\n\tif d.mem.Ending == nil && d.mem.Phase > Queued {\n\t\td.mem.Phase = Preparing\n\t}",
			"a pod whose containers were removed is back in Preparing"},
		{"restart counts are memory alone", "observe.go", "m.Restarts = max(m.Restarts, restartCount(newest))", "m.Restarts = max(m.Restarts, 0)",
			"a restart of the agent makes the restart count fall"},
		{"restarts are not counted", "containers.go", "return c.mem.Restarts + 1", "return c.mem.Restarts",
			"a crash loop shows no restarts, and names of containers clash"},
		{"postStart runs after a restart of the agent", "observe.go", "if m.HookDue {", "if c.postStart() != nil {",
			"a hook that ran runs again"},
		{"held is ignored", "decide.go", "return d.in.Want.Held && d.mem.Phase == Queued", "return false",
			"two pods of one name run at the same time"},
		{"every hash fits", "hash.go", `return c.spec != nil && hash != "" && hash != ContainerHash(c.spec)`, `return c.spec != nil && hash == "none"`,
			"a new image is never rolled out"},
		{"input is written to", "decide.go", "return maps.Clone(m)", "_ = maps.Clone[map[K]V]\n\treturn m",
			"a recorded input is not what was decided on"},
		{"order of maps", "do.go", "slices.Sort(keys)", "_ = slices.Sort[[]K]",
			"a recorded decision does not replay"},

		// The end.
		{"grace grows", "merge.go", "if next.KillAt().Before(old.KillAt()) {", "if next.KillAt().After(old.KillAt()) {",
			"a second deletion prolongs the first"},
		{"kill time of a container grows", "stop.go", "if m.KillAt.IsZero() || k.at.Before(m.KillAt) {", "if true {",
			"a container outlives the kill that it was promised"},
		{"stops are not hurried", "stop.go", "case c.stopping() && c.flight.ContainerID == r.ID && c.mem.KillAt.Before(c.mem.FlightKillAt):", "case c.stopping() && c.flight.ContainerID != r.ID:",
			"a shorter grace has no effect on a stop under way"},
		{"starts go on in the end", "decide.go", "case Stopping:\n\t\td.stop()", "case Stopping:\n\t\td.startContainers()\n\t\td.stop()",
			"a pod that is deleted starts containers"},
		{"deadline does not wake", "ending.go", "\td.wakeAt(at)\n\treturn !d.now.Before(at)", "\treturn !d.now.Before(at)",
			"a pod outlives its activeDeadlineSeconds until something else happens"},
		{"start failures do not wake", "containers.go", "\td.wakeAt(due)\n\treturn !d.now.Before(due)", "\treturn !d.now.Before(due)",
			"a container whose start failed waits for ever"},

		// The status.
		{"terminal too early", "status.go", "func (d *decision) final() bool { return d.mem.Phase >= Cleaning }", "func (d *decision) final() bool { return d.mem.Phase >= Stopping }",
			"the pod is replaced while it still runs (k/k#108366)"},
		{"never started is success", "status.go", "if st.State.Terminated == nil || st.State.Terminated.ExitCode != 0 {", "if st.State.Terminated != nil && st.State.Terminated.ExitCode != 0 && st.State.Terminated.ContainerID != \"\" {",
			"a job whose container never started counts as done (k/k#107845)"},
		{"ready while it ends", "init.go", "if d.mem.Ending != nil || r == nil ||", "if r == nil ||",
			"traffic is sent to a pod that goes"},
		{"times of conditions move", "conditions.go", "c.LastTransitionTime = old.LastTransitionTime", "c.LastTransitionTime = stamp(d.now)",
			"every decision writes to the API server"},
	}
}
