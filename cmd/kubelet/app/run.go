package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/cmd/kubelet/privilege"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/nodefx"
)

// stopTimeout bounds a clean stop; containers run on.
const stopTimeout = 30 * time.Second

// settings are the flags and files of one start, read and found valid.
type settings struct {
	*options
	flags    *flags
	given    *pflag.FlagSet // all flags, with what the command line says
	loaded   *config.Loaded
	features config.Features
	// setVerbosity changes what is logged from now on.
	setVerbosity func(level string) (string, error)
	// flushLogs writes what is buffered; it hangs where nobody takes it.
	flushLogs func()
}

// run is the life of the kubelet: read, check, build, start, wait, stop.
func run(ctx context.Context, o *options, f *flags, set *pflag.FlagSet, sink *logSink) error {
	s, err := load(o, f, set)
	if err != nil {
		return err
	}
	logging := s.loaded.Kubelet.Logging
	f.logFormat = logging.Format
	log := newLogs(sink, logging)
	s.setVerbosity, s.flushLogs = log.setVerbosity, sink.Flush
	stopFlush := sink.keepFlushing(ctx, logging.FlushFrequency.Duration.Duration)
	defer stopFlush()
	if err := privilege.Check(); err != nil {
		log.Error("Kubelet running with insufficient permissions", "err", err)
	}
	warnAbout(log.Logger, s)
	if err := runAgent(ctx, s, log.Logger); err != nil {
		return fmt.Errorf("failed to run Kubelet: %w", err)
	}
	return nil
}

func runAgent(ctx context.Context, s settings, log *slog.Logger) error {
	if err := checkHost(&s.loaded.Kubelet, log); err != nil {
		return err
	}
	period, err := watchdogPeriod(os.Getenv, os.Getpid())
	if err != nil {
		return err
	}
	ctx, unlock, err := s.flags.lock(ctx, log)
	if err != nil {
		return err
	}
	defer unlock()
	agent, err := build(ctx, s, log)
	if err != nil {
		return err
	}
	agent.watchdog = &watchdog{period: period, healthy: agent.healthy, notify: notifySystemd, log: log}
	log.Info("Starting kubelet", "version", s.version, "rootDir", s.flags.rootDir)
	return live(ctx, agent, log)
}

// lock takes the lock of --lock-file. With --exit-on-lock-contention the
// context that it returns ends when another process opens the file.
func (f *flags) lock(ctx context.Context, log *slog.Logger) (context.Context, func(), error) {
	if f.lockFile == "" {
		return ctx, func() {}, nil
	}
	log.Info("Acquiring file lock", "path", f.lockFile)
	unlock, err := lockFile(ctx, f.lockFile)
	if err != nil || !f.exitOnLockContention {
		return ctx, unlock, err
	}
	group := tasks.New(ctx)
	group.Go("lock file", func(ctx context.Context) error {
		if err := awaitContention(ctx, f.lockFile); err != nil {
			return err
		}
		if ctx.Err() == nil {
			log.Info("another process opened the lock file: making room for it", "path", f.lockFile)
		}
		group.Stop()
		return nil
	})
	return group.Context(), func() {
		group.Stop()
		if err := group.Wait(); err != nil {
			log.Error("the lock file could not be watched", "err", err)
		}
		unlock()
	}, nil
}

// load reads all layers and validates what they add up to.
func load(o *options, f *flags, set *pflag.FlagSet) (settings, error) {
	s := settings{options: o, flags: f, given: set}
	if err := f.validate(o.labels); err != nil {
		return s, fmt.Errorf("failed to validate kubelet flags: %w", err)
	}
	override, err := f.override(set)
	if err != nil {
		return s, err
	}
	s.loaded, err = config.NewLoader(o.kinds...).Load(config.Files{
		Main: f.configFile, DropInDir: f.configDir, Strict: f.configStrict, Override: override,
	})
	if err != nil {
		return s, err
	}
	gates, err := knownGates(o)
	if err != nil {
		return s, err
	}
	s.features, err = gates.Resolve(s.loaded.Kubelet.FeatureGates)
	if err != nil {
		return s, placed(fmt.Errorf("failed to set feature gates from initial flags-based config: %w", err), s.loaded)
	}
	if err := config.Validate(&s.loaded.Kubelet, s.features); err != nil {
		return s, placed(fmt.Errorf("failed to validate kubelet configuration, error: %w", err), s.loaded)
	}
	return s, nil
}

// warnAbout says what was read but has no effect.
func warnAbout(log *slog.Logger, s settings) {
	for _, p := range s.loaded.Problems {
		log.Warn("Using lenient decoding as strict decoding failed", "file", p.File, "line", p.Line, "err", p.Error())
	}
	for _, w := range s.features.Warnings {
		log.Warn("a feature gate is set", "notice", w)
	}
	for _, missing := range s.loaded.NotActedOn() {
		log.Warn("these configuration fields are accepted but have no effect yet", "part", missing.Part, "fields", missing.Fields)
	}
	for _, f := range s.loaded.SetFields() {
		if f.State == config.Differs {
			log.Info("a configuration field means something else here", "field", f.Path, "reason", f.Text)
		}
	}
	warnIneffective(s.given, log)
	if len(s.loaded.Ignored) > 0 {
		log.Info("only files whose names end in .conf are read from the drop-in folder", "ignored", s.loaded.Ignored)
	}
}

// warnAlone says what was set and has no effect in an agent without a cluster.
func warnAlone(log *slog.Logger, loaded *config.Loaded) {
	var fields []string
	for _, f := range loaded.SetFields() {
		if f.State == config.InCluster {
			fields = append(fields, f.Path)
		}
	}
	if len(fields) > 0 {
		log.Warn("these configuration fields have no effect without a cluster (no --kubeconfig)", "fields", fields)
	}
}

// built is an agent and what serves it.
type built struct {
	*nodefx.Agent
	serve    func(context.Context) error
	api      *api // nil: not served
	healthy  func(context.Context) error
	watchdog *watchdog
}

// live starts the agent and waits for the end of ctx or of a part.
func live(ctx context.Context, agent *built, log *slog.Logger) error {
	if err := agent.Start(ctx); err != nil {
		return errors.Join(err, stop(ctx, agent))
	}
	group := tasks.New(ctx)
	group.Go("memory", keepTrimmed)
	group.Go("server", agent.serve)
	if agent.api != nil {
		group.Go("api", agent.api.Run)
		group.Go("client-ca", agent.api.keepCAs)
	}
	group.Go("watchdog", agent.watchdog.Run)
	log.Info("Started kubelet")
	if _, err := notifySystemd(ctx, "READY=1"); err != nil {
		log.Error("systemd was not told that the kubelet is ready", "err", err)
	}
	var err error
	select {
	case err = <-agent.Done():
	case <-group.Context().Done(): // ctx ended, or the server did: the group tells
	}
	log.Info("Stopping kubelet; containers run on")
	if _, err := notifySystemd(context.WithoutCancel(ctx), "STOPPING=1"); err != nil {
		log.Debug("systemd was not told of the stop", "err", err)
	}
	group.Stop()
	return errors.Join(err, group.Wait(), stop(ctx, agent))
}

func stop(ctx context.Context, agent *built) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return agent.Stop(ctx)
}
