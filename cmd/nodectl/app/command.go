package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const (
	defaultRootDir = "/var/lib/kubelet"
	socketName     = "nodekit.sock"
	callTimeout    = 10 * time.Second
)

// Main runs the command with these arguments (without the program's name) and
// returns the exit code.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, args, os.Stdout, os.Stderr)
}

// Run is Main without the process: it writes what was asked for to stdout and
// errors to stderr.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(&env{out: stdout})
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "nodectl:", err)
		return 1
	}
	return 0
}

// env is what the commands share.
type env struct {
	out     io.Writer
	rootDir string
	socket  string
	output  string // "", outputJSON
}

const outputJSON = "json"

func (e *env) client() client {
	if e.socket != "" {
		return newClient(e.socket)
	}
	return newClient(filepath.Join(e.rootDir, socketName))
}

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:           "nodectl",
		Short:         "Look inside a running node agent",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVar(&e.rootDir, "root-dir", defaultRootDir, "the agent's --root-dir, in which its socket is")
	root.PersistentFlags().StringVar(&e.socket, "socket", "", "the agent's socket (default ROOT_DIR/"+socketName+")")
	root.AddCommand(
		withOutput(e, command("pods", "List the pods", cobra.NoArgs, e.pods)),
		withOutput(e, command("pod UID|NAMESPACE/NAME", "Show one pod and what was decided about it of late (-o json: the trace that replay reads)", cobra.ExactArgs(1), e.pod)),
		withOutput(e, command("events [UID|NAMESPACE/NAME]", "List the newest events, of all pods or one", cobra.MaximumNArgs(1), e.events)),
		command("parts", "List the parts that run, in the order of their start", cobra.NoArgs, e.parts),
		command("hooks", "List the sources, mutators, admitters and hooks, in the order in which they are called", cobra.NoArgs, e.hooks),
		command("routes", "List the routes of the HTTPS API, and the subresources of the node that open each", cobra.NoArgs, e.routes),
		command("graph", "Print the object graph in DOT", cobra.NoArgs, e.graph),
		command("replay FILE", "Decide the inputs of a trace again and compare the plans (FILE -: standard input)", cobra.ExactArgs(1), e.replay),
	)
	return root
}

func command(use, short string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: run, DisableFlagsInUseLine: true}
}

func withOutput(e *env, cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVarP(&e.output, "output", "o", "", `"json" for machines; default: for people`)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if e.output != "" && e.output != outputJSON {
			return errors.New(`--output must be "json" or left out`)
		}
		return nil
	}
	return cmd
}
