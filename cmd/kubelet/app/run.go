package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"nodekit.dev/cmd/kubelet/config"
	"nodekit.dev/internal/tasks"
	"nodekit.dev/node/nodefx"
)

// stopTimeout bounds a clean stop; containers run on.
const stopTimeout = 30 * time.Second

// run is the life of the kubelet: read, check, build, start, wait, stop.
func run(ctx context.Context, o *options, f *flags, set *pflag.FlagSet, stderr io.Writer) error {
	loaded, features, err := load(o, f, set)
	if err != nil {
		return err
	}
	kc := &loaded.Kubelet
	f.logFormat = kc.Logging.Format
	log := newLogger(stderr, kc.Logging.Format, int(kc.Logging.Verbosity))
	warnIfNotRoot(log)
	warnAbout(log, loaded, features)
	if err := checkHost(kc, log); err != nil {
		return fmt.Errorf("failed to run Kubelet: %w", err)
	}
	agent, err := build(o, f, loaded, features, log)
	if err != nil {
		return fmt.Errorf("failed to run Kubelet: %w", err)
	}
	if err := live(ctx, agent, log, stderr, kc.Logging.FlushFrequency.Duration.Duration); err != nil {
		return fmt.Errorf("failed to run Kubelet: %w", err)
	}
	return nil
}

// load reads all layers and validates what they add up to.
func load(o *options, f *flags, set *pflag.FlagSet) (*config.Loaded, config.Features, error) {
	var features config.Features
	override, err := f.override(set)
	if err != nil {
		return nil, features, err
	}
	loaded, err := config.NewLoader(o.kinds...).Load(config.Files{
		Main: f.configFile, DropInDir: f.configDir, Strict: f.configStrict, Override: override,
	})
	if err != nil {
		return nil, features, err
	}
	gates, err := config.StockGates()
	if err != nil {
		return nil, features, err
	}
	for _, g := range o.gates {
		if err := gates.AddGate(g); err != nil {
			return nil, features, err
		}
	}
	features, err = gates.Resolve(loaded.Kubelet.FeatureGates)
	if err != nil {
		return nil, features, fmt.Errorf("failed to set feature gates from initial flags-based config: %w", err)
	}
	if err := config.Validate(&loaded.Kubelet, features); err != nil {
		return nil, features, fmt.Errorf("failed to validate kubelet configuration, error: %w", err)
	}
	return loaded, features, nil
}

// warnAbout says what was read but has no effect.
func warnAbout(log *slog.Logger, loaded *config.Loaded, features config.Features) {
	for _, p := range loaded.Problems {
		log.Warn("Using lenient decoding as strict decoding failed", "file", p.File, "line", p.Line, "err", p.Error())
	}
	for _, w := range features.Warnings {
		log.Warn(w)
	}
	if fields := loaded.NotActedOn(); len(fields) > 0 {
		log.Warn("these configuration fields are accepted but have no effect yet", "fields", fields)
	}
}

// built is an agent and what serves it.
type built struct {
	*nodefx.Agent
	serve func(context.Context) error
}

// live starts the agent and waits for the end of ctx or of a part.
func live(ctx context.Context, agent *built, log *slog.Logger, stderr io.Writer, flush time.Duration) (err error) {
	group := tasks.New(ctx)
	if sink, ok := stderr.(*logSink); ok {
		group.Go("log-flush", func(ctx context.Context) error { return sink.flushEvery(ctx, flush) })
	}
	defer func() {
		group.Stop()
		err = errors.Join(err, group.Wait())
	}()
	if err := agent.Start(ctx); err != nil {
		return errors.Join(err, stop(ctx, agent))
	}
	group.Go("server", agent.serve)
	log.Info("Started kubelet", "version", Version())
	select {
	case <-group.Context().Done():
		err = context.Cause(group.Context())
		if ctx.Err() != nil {
			err = nil
		}
	case err = <-agent.Done():
	}
	log.Info("Stopping kubelet; containers run on")
	return errors.Join(err, stop(ctx, agent))
}

func stop(ctx context.Context, agent *built) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return agent.Stop(ctx)
}
