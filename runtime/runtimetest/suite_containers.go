package runtimetest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nodekit.dev/runtime"
)

func containerLife(t *testing.T, b *bench) {
	p := b.pod("container-life")
	before := time.Now()
	id := p.create("app", 3, polite)
	c := p.find(id)
	if c.State != runtime.ContainerCreated || c.SandboxID != p.sandboxID || c.Name != "app" || c.Attempt != 3 {
		t.Errorf("after the creation: %+v", c)
	}
	if !c.StartedAt.IsZero() || !c.FinishedAt.IsZero() {
		t.Errorf("a container that never ran has times: %+v", c)
	}
	p.checkRecent("container created", c.CreatedAt, before)
	want := p.container("app", 3)
	p.checkMap("label", c.Labels, want.Labels)
	p.checkMap("annotation", c.Annotations, want.Annotations)
	if c.ImageID == "" {
		t.Error("the container does not tell its image ID")
	}

	p.must(p.Containers.StartContainer(p.ctx(), id), "start the container")
	c = p.find(id)
	if c.State != runtime.ContainerRunning || !c.FinishedAt.IsZero() {
		t.Errorf("after the start: %+v", c)
	}
	p.checkRecent("container started", c.StartedAt, before)

	p.must(p.Containers.StopContainer(p.ctx(), id, 0), "stop the container")
	c = p.find(id)
	if c.State != runtime.ContainerExited {
		t.Errorf("after the stop: %+v", c)
	}
	p.checkRan(c)
	p.must(p.Containers.RemoveContainer(p.ctx(), id), "remove the container")
	if left := p.look().Containers; len(left) != 0 {
		t.Errorf("after the removal: %+v", left)
	}
}

// startNoticed is how late a runtime may note a start: containerd does so after
// the process began to run, so one that ends at once has "ended before it started".
const startNoticed = time.Second

// checkRan allows a container to end a little before it started: containerd
// 1.6 takes the two times from different processes, and shows this for
// containers that end at once.
func (b *bench) checkRan(c runtime.Container) {
	b.Helper()
	if c.StartedAt.IsZero() || c.FinishedAt.Before(c.StartedAt.Add(-clockSlack)) {
		b.Errorf("container %s ran from %s to %s", c.Name, c.StartedAt, c.FinishedAt)
	}
}

func containerExits(t *testing.T, b *bench) {
	p := b.pod("container-exits")
	for _, c := range []struct {
		name, script, reason string
		code                 int32
	}{
		{name: "zero", script: "exit 0", reason: "Completed"},
		{name: "three", script: "exit 3", code: 3, reason: "Error"},
		{name: "later", script: "sleep 1; exit 42", code: 42, reason: "Error"},
	} {
		id := p.start(c.name, 0, c.script)
		got := p.until(id, runtime.ContainerExited)
		if got.ExitCode != c.code || got.Reason != c.reason {
			t.Errorf("%q ended with code %d, reason %q; want %d, %q", c.script, got.ExitCode, got.Reason, c.code, c.reason)
		}
		if got.StartedAt.IsZero() || got.FinishedAt.Add(startNoticed).Before(got.StartedAt) {
			t.Errorf("%q ran from %s to %s", c.script, got.StartedAt, got.FinishedAt)
		}
	}
}

func containerRestarts(t *testing.T, b *bench) {
	p := b.pod("container-restarts")
	first := p.start("app", 0, "exit 1")
	p.until(first, runtime.ContainerExited)
	second := p.start("app", 1, polite)
	all := p.look().Containers
	if len(all) != 2 || all[0].ID != second || all[0].Attempt != 1 || all[1].ID != first || all[1].ExitCode != 1 {
		t.Errorf("want the second attempt first and the dead one behind it: %+v", all)
	}
	p.must(p.Containers.RemoveContainer(p.ctx(), first), "remove the first attempt")
	if all := p.look().Containers; len(all) != 1 || all[0].State != runtime.ContainerRunning {
		t.Errorf("after the removal of the first attempt: %+v", all)
	}
}

func containerLogs(t *testing.T, b *bench) {
	if b.LogDirectory == "" {
		t.Skip("the subject has no LogDirectory")
	}
	p := b.pod("container-logs")
	id := p.start("app", 0, "echo hello; echo trouble >&2; exit 0")
	c := p.until(id, runtime.ContainerExited)
	want := filepath.Join(p.LogDirectory, p.container("app", 0).LogPath)
	if c.LogPath != want {
		t.Fatalf("log path %s, want %s", c.LogPath, want)
	}
	var log string
	p.eventually("both lines are in the log", func() bool {
		data, err := os.ReadFile(c.LogPath)
		if err != nil {
			t.Fatalf("read the log: %v", err)
		}
		log = string(data)
		return strings.Count(log, "\n") == 2
	})
	for _, part := range []string{" stdout F hello\n", " stderr F trouble\n"} {
		if !strings.Contains(log, part) {
			t.Errorf("the log lacks %q:\n%s", part, log)
		}
	}
	for line := range strings.Lines(log) {
		stamp, _, _ := strings.Cut(line, " ")
		if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil {
			t.Errorf("a log line starts with %q, not a time: %v", stamp, err)
		}
	}
}

// logIsReopened: a log that was renamed is written to until the runtime is told
// to open a new one, and every line is in one of the two.
func logIsReopened(t *testing.T, b *bench) {
	if b.LogDirectory == "" || b.ReopenLog == nil {
		t.Skip("the subject has no LogDirectory or no ReopenLog")
	}
	p := b.pod("log-is-reopened")
	id := p.start("app", 0, "trap 'echo last; exit 0' TERM; echo first; sleep 1000 & wait")
	path := p.find(id).LogPath
	aside := path + ".1"
	p.eventually("the first line is in the log", func() bool { return strings.HasSuffix(readLog(t, path), " stdout F first\n") })
	p.must(os.Rename(path, aside), "rename the log")
	p.must(b.ReopenLog(p.ctx(), id), "reopen the log")
	if _, err := os.Stat(path); err != nil {
		t.Errorf("after the log was reopened: %v", err)
	}
	p.stop(id, 30*time.Second)
	p.eventually("the last line is in the new log", func() bool { return strings.HasSuffix(readLog(t, path), " stdout F last\n") })
	for _, file := range []string{aside, path} {
		if log := readLog(t, file); strings.Count(log, "\n") != 1 {
			t.Errorf("want one line in %s:\n%s", file, log)
		}
	}
	if err := b.ReopenLog(p.ctx(), id); err == nil {
		t.Error("the log of a container that has ended was reopened")
	}
}

// readLog is "" as long as there is no log.
func readLog(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatalf("read the log: %v", err)
	}
	return string(text)
}

func startFails(t *testing.T, b *bench) {
	p := b.pod("start-fails")
	cfg := p.container("app", 0, "/does-not-exist")
	id, err := p.Containers.CreateContainer(p.ctx(), p.sandboxID, cfg, p.cfg)
	p.must(err, "create the container")
	if err := p.Containers.StartContainer(p.ctx(), id); err == nil {
		t.Error("a command that does not exist started")
	}
	if c := p.find(id); c.State == runtime.ContainerRunning || (c.State == runtime.ContainerExited && c.ExitCode == 0) {
		t.Errorf("after the failed start: %+v", c)
	}
	p.must(p.Containers.StopContainer(p.ctx(), id, 0), "stop what never ran")
	p.must(p.Containers.RemoveContainer(p.ctx(), id), "remove what never ran")
	next := p.start("app", 1, polite)
	if c := p.find(next); c.State != runtime.ContainerRunning {
		t.Errorf("the next attempt: %+v", c)
	}
}

func createFails(t *testing.T, b *bench) {
	p := b.pod("create-fails")
	cfg := p.container("app", 0, "sh", "-c", polite)
	cfg.Image = runtime.Image{Ref: b.MissingImage, Requested: b.MissingImage}
	if id, err := p.Containers.CreateContainer(p.ctx(), p.sandboxID, cfg, p.cfg); err == nil {
		t.Errorf("container %s was created from an image that is not there", id)
	}
	if left := p.look().Containers; len(left) != 0 {
		t.Errorf("a failed creation left %+v", left)
	}
	id := p.start("app", 0, polite) // name and attempt are free
	if c := p.find(id); c.State != runtime.ContainerRunning {
		t.Errorf("the next try: %+v", c)
	}
}

func (p *testPod) stop(id string, grace time.Duration) (runtime.Container, time.Duration) {
	p.Helper()
	start := time.Now()
	p.must(p.Containers.StopContainer(p.ctx(), id, grace), "stop the container")
	lasted := time.Since(start)
	c := p.find(id)
	if c.State != runtime.ContainerExited {
		p.Errorf("after the stop returned: %+v", c)
	}
	return c, lasted
}

func stopAsksFirst(t *testing.T, b *bench) {
	p := b.pod("stop-asks-first")
	id := p.start("app", 0, polite)
	p.settle()
	const grace = 30 * time.Second
	if c, lasted := p.stop(id, grace); c.ExitCode != 7 || lasted >= grace {
		t.Errorf("ended with code %d after %s, want 7 from its own handler, before %s", c.ExitCode, lasted, grace)
	}
}

func stopKillsAfterGrace(t *testing.T, b *bench) {
	p := b.pod("stop-kills-after-grace")
	id := p.start("app", 0, stubborn)
	p.settle()
	const grace = 2 * time.Second
	if c, lasted := p.stop(id, grace); c.ExitCode != codeKilled || lasted < grace {
		t.Errorf("ended with code %d after %s, want %d and not before %s", c.ExitCode, lasted, codeKilled, grace)
	}
}

func stopWithoutGrace(t *testing.T, b *bench) {
	p := b.pod("stop-without-grace")
	id := p.start("app", 0, polite)
	p.settle()
	if c, _ := p.stop(id, 0); c.ExitCode != codeKilled {
		t.Errorf("ended with code %d, want %d", c.ExitCode, codeKilled)
	}
}

func stopGivenUp(t *testing.T, b *bench) {
	p := b.pod("stop-given-up")
	id := p.start("app", 0, stubborn)
	p.settle()
	ctx, cancel := context.WithTimeout(p.ctx(), time.Second)
	defer cancel()
	if err := p.Containers.StopContainer(ctx, id, caseDeadline); err == nil {
		t.Error("a stop whose context ended said that it was done")
	}
	if c, _ := p.stop(id, time.Second); c.ExitCode != codeKilled {
		t.Errorf("ended with code %d, want %d", c.ExitCode, codeKilled)
	}
}

func stopAndRemoveTwice(t *testing.T, b *bench) {
	p := b.pod("stop-and-remove-twice")
	id := p.start("app", 0, polite)
	for range 2 {
		p.must(p.Containers.StopContainer(p.ctx(), id, 0), "stop the container")
	}
	for range 2 {
		p.must(p.Containers.RemoveContainer(p.ctx(), id), "remove the container")
	}
	p.must(p.Containers.StopContainer(p.ctx(), id, 0), "stop the removed container")
	if left := p.look().Containers; len(left) != 0 {
		t.Errorf("after the removal: %+v", left)
	}
}

func imageMissing(t *testing.T, b *bench) {
	missing := runtime.ImageSpec{Image: b.MissingImage}
	ref, err := b.Images.PullImage(b.ctx(), runtime.ImagePull{Spec: missing})
	if err == nil {
		t.Fatalf("the pull of a missing image gave %q", ref)
	}
	if err.Error() == "" {
		t.Error("the failed pull does not say why")
	}
	info, found, err := b.Images.ImageStatus(b.ctx(), missing)
	if err != nil || found {
		t.Errorf("status of a missing image: %+v, %t, error %v", info, found, err)
	}
}

func imagePulledTwice(t *testing.T, b *bench) {
	first, second := b.pull(), b.pull()
	if first == "" || first != second {
		t.Errorf("two pulls of one image gave %q and %q", first, second)
	}
	for _, name := range []string{b.Image, first} {
		info, found, err := b.Images.ImageStatus(b.ctx(), runtime.ImageSpec{Image: name})
		if err != nil || !found || info.ID != first {
			t.Errorf("status of %s: %+v, %t, error %v; want ID %s", name, info, found, err, first)
		}
	}
	all, err := b.Images.ListImages(b.ctx())
	b.must(err, "list the images")
	seen := 0
	for _, i := range all {
		if i.ID == first {
			seen++
		}
	}
	if seen != 1 {
		t.Errorf("the image is listed %d times", seen)
	}
}
