package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/nodefx"
)

// stopTimeout bounds a clean stop; containers run on.
const stopTimeout = 30 * time.Second

// settings are the flags and files of one start, read and found valid.
type settings struct {
	*options
	flags    *flags
	loaded   *config.Loaded
	features config.Features
}

// run is the life of the kubelet: read, check, build, start, wait, stop.
func run(ctx context.Context, o *options, f *flags, set *pflag.FlagSet, sink *logSink) error {
	s, err := load(o, f, set)
	if err != nil {
		return err
	}
	logging := s.loaded.Kubelet.Logging
	f.logFormat = logging.Format
	log := newLogger(sink, logging.Format, int(logging.Verbosity))
	stopFlush := sink.keepFlushing(ctx, logging.FlushFrequency.Duration.Duration)
	defer stopFlush()
	warnIfNotRoot(log)
	warnAbout(log, s)
	if err := runAgent(ctx, s, log); err != nil {
		return fmt.Errorf("failed to run Kubelet: %w", err)
	}
	return nil
}

func runAgent(ctx context.Context, s settings, log *slog.Logger) error {
	if err := checkHost(&s.loaded.Kubelet, log); err != nil {
		return err
	}
	agent, err := build(ctx, s, log)
	if err != nil {
		return err
	}
	log.Info("Starting kubelet", "version", s.version, "rootDir", s.flags.rootDir)
	return live(ctx, agent, log)
}

// load reads all layers and validates what they add up to.
func load(o *options, f *flags, set *pflag.FlagSet) (settings, error) {
	s := settings{options: o, flags: f}
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
		return s, fmt.Errorf("failed to set feature gates from initial flags-based config: %w", err)
	}
	if err := config.Validate(&s.loaded.Kubelet, s.features); err != nil {
		return s, fmt.Errorf("failed to validate kubelet configuration, error: %w", err)
	}
	return s, nil
}

// warnAbout says what was read but has no effect.
func warnAbout(log *slog.Logger, s settings) {
	for _, p := range s.loaded.Problems {
		log.Warn("Using lenient decoding as strict decoding failed", "file", p.File, "line", p.Line, "err", p.Error())
	}
	for _, w := range s.features.Warnings {
		log.Warn("feature gate has no effect", "reason", w)
	}
	if fields := s.loaded.NotActedOn(); len(fields) > 0 {
		log.Warn("these configuration fields are accepted but have no effect yet", "fields", fields)
	}
}

// built is an agent and what serves it.
type built struct {
	*nodefx.Agent
	serve func(context.Context) error
}

// live starts the agent and waits for the end of ctx or of a part.
func live(ctx context.Context, agent *built, log *slog.Logger) error {
	if err := agent.Start(ctx); err != nil {
		return errors.Join(err, stop(ctx, agent))
	}
	group := tasks.New(ctx)
	group.Go("memory", keepTrimmed)
	group.Go("server", agent.serve)
	log.Info("Started kubelet")
	var err error
	select {
	case err = <-agent.Done():
	case <-group.Context().Done(): // ctx ended, or the server did: the group tells
	}
	log.Info("Stopping kubelet; containers run on")
	group.Stop()
	return errors.Join(err, group.Wait(), stop(ctx, agent))
}

func stop(ctx context.Context, agent *built) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return agent.Stop(ctx)
}
