package app

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	logsapi "k8s.io/component-base/logs/api/v1"
)

func TestLimitFiles(t *testing.T) {
	now := unix.Rlimit{Cur: 1024, Max: 4096}
	for wanted, want := range map[uint64]unix.Rlimit{0: now, 512: now, 2048: {Cur: 2048, Max: 4096}, 1 << 20: {Cur: 1 << 20, Max: 1 << 20}} {
		if got := raised(now, wanted); got != want {
			t.Errorf("%d files: %+v, want %+v", wanted, got, want)
		}
	}
	if err := limitFiles(0); err != nil {
		t.Errorf("nothing to raise: %v", err)
	}
}

func TestContentionProfiling(t *testing.T) {
	defer runtime.SetBlockProfileRate(0)
	s := settingsOf(t, "enableContentionProfiling: true\n")
	if err := checkHost(&s.loaded.Kubelet, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	ready, done := make(chan bool), make(chan bool)
	go func() { // blocks until someone receives
		ready <- true
		close(done)
	}()
	<-ready
	<-done
	if records, _ := runtime.BlockProfile(nil); records == 0 {
		t.Error("no wait was recorded")
	}
}

// vmodule lets the files that it names say more, or less.
func TestVModule(t *testing.T) {
	var out bytes.Buffer
	sink := newLogSink(&out)
	log := newLogs(sink, logsapi.LoggingConfiguration{Format: formatText, Verbosity: 2, VModule: logsapi.VModuleConfiguration{
		{FilePattern: "limits_t*", Verbosity: 4}, {FilePattern: "app/other", Verbosity: 9},
	}})
	log.Debug("said here")
	log.Log(t.Context(), slog.Level(-5), "too much")
	log.With("pod", "x").Warn("with attributes")
	sink.Flush()
	text := out.String()
	if !strings.Contains(text, "said here") || strings.Contains(text, "too much") || !strings.Contains(text, `pod="x"`) {
		t.Errorf("%q", text)
	}
	one := &atomic.Int64{}
	quiet := byFile{verbosity: one, files: []logsapi.VModuleItem{{FilePattern: "app/limits_test", Verbosity: 7}, {FilePattern: "*", Verbosity: 1}}}
	pc, _, _, _ := runtime.Caller(0)
	if got := quiet.verbosityOf(pc); got != 7 {
		t.Errorf("a pattern with a slash: %d", got)
	}
	if got := lastParts(filepath.Join("a", "b", "c"), 2); got != "b/c" {
		t.Errorf("the last parts: %q", got)
	}
}

// /debug/flags/v changes the verbosity of an agent that runs.
func TestSetVerbosity(t *testing.T) {
	for _, format := range []string{formatText, formatJSON} {
		var out bytes.Buffer
		sink := newLogSink(&out)
		log := newLogs(sink, logsapi.LoggingConfiguration{Format: format})
		log.Debug("before")
		if said, err := log.setVerbosity("4"); err != nil || said != "successfully set klog.logging.verbosity to 4" {
			t.Errorf("%s: %q, %v", format, said, err)
		}
		log.Debug("after")
		if _, err := log.setVerbosity("loud"); err == nil {
			t.Error("a verbosity that is no number")
		}
		sink.Flush()
		if text := out.String(); strings.Contains(text, "before") || !strings.Contains(text, "after") {
			t.Errorf("%s: %q", format, text)
		}
	}
}
