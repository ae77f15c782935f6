package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command with these arguments (without the program's name) and
// returns the exit code. SIGINT and SIGTERM stop it; a second one at once.
func Main(args []string, opts ...Option) int {
	tuneMemory()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal has its default effect
	return Run(ctx, args, os.Stdout, os.Stderr, opts...)
}

// Run is Main without the process: it ends when ctx does, writes help and
// version to stdout and logs to stderr. Log lines are buffered for at most the
// configured logging.flushFrequency; all are written when Run returns or panics.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, opts ...Option) int {
	sink := newLogSink(stderr)
	defer sink.Flush()
	f := &flags{}
	err := execute(ctx, newOptions(opts), f, args, stdout, sink)
	switch {
	case errors.Is(err, errUnsupported): // preflight told what there is to tell
		return 1
	case err != nil:
		report(sink, f.logFormat, err)
		return 1
	}
	return 0
}

func execute(ctx context.Context, o *options, f *flags, args []string, stdout io.Writer, sink *logSink) error {
	cmd, err := newCommand(o, f, stdout, sink)
	if err != nil {
		return err
	}
	cmd.SetArgs(args)
	if isPreflight(args) {
		return preflight(ctx, o, f, cmd.Flags(), args, stdout)
	}
	err = cmd.ExecuteContext(ctx)
	if format := cmd.Flags().Lookup("logging-format"); f.logFormat == "" {
		f.logFormat = format.Value.String() // it failed before the files were read
	}
	return err
}

// newCommand builds the cobra command.
func newCommand(o *options, f *flags, stdout io.Writer, sink *logSink) (*cobra.Command, error) {
	themes, err := f.themes()
	if err != nil {
		return nil, err
	}
	themes = append(themes, theme{title: "Vendor", set: o.vendorFlags})
	cmd := &cobra.Command{
		Use:           o.name,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %s", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.version != "" && f.version != "false" {
				return printVersion(stdout, f.version, o.version)
			}
			warnDeprecated(cmd.Flags(), sink)
			return run(cmd.Context(), o, f, cmd.Flags(), sink)
		},
	}
	cmd.SetOut(stdout)
	cmd.SetErr(sink)
	for _, t := range themes {
		cmd.Flags().AddFlagSet(t.set)
	}
	cmd.Flags().SetNormalizeFunc(underscores)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("failed to parse kubelet flag: %w", err)
	})
	cmd.SetHelpFunc(func(*cobra.Command, []string) { usage(stdout, o, themes) })
	return cmd, nil
}
