package app

import (
	"context"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal has its default effect
	sink := newLogSink(os.Stderr)
	defer sink.Flush()
	return Run(ctx, args, os.Stdout, sink, opts...)
}

// Run is Main without the process: it ends when ctx does, writes help and
// version to stdout and logs to stderr.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, opts ...Option) int {
	f := &flags{}
	cmd := newCommand(newOptions(opts), f, stdout, stderr)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		report(stderr, f.logFormat, err)
		return 1
	}
	return 0
}

// newCommand builds the cobra command.
func newCommand(o *options, f *flags, stdout, stderr io.Writer) *cobra.Command {
	themes := append(f.themes(), theme{title: "Vendor", set: o.flags})
	cmd := &cobra.Command{
		Use:           o.name,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %+s", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.version {
				_, err := fmt.Fprintln(stdout, "Kubernetes", o.version)
				return err
			}
			warnDeprecated(cmd.Flags(), stderr)
			return run(cmd.Context(), o, f, cmd.Flags(), stderr)
		},
	}
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	for _, t := range themes {
		cmd.Flags().AddFlagSet(t.set)
	}
	cmd.Flags().SetNormalizeFunc(underscores)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("failed to parse kubelet flag: %w", err)
	})
	cmd.SetHelpFunc(func(*cobra.Command, []string) { usage(stdout, themes) })
	return cmd
}
