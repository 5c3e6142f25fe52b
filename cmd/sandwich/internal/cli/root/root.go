// Package root runs a command line: it has the root command, signals, limits of the process, and
// the report of errors.
package root

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/config"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/microkernel"
)

// Run executes a command line with the given top-level verbs and returns the exit code of the
// process.
func Run(ctx context.Context, args []string, verbs ...*cobra.Command) int {
	root := New(verbs...)
	root.SetArgs(args)
	out := &checkedWriter{to: show.Stdout}
	clean := show.NewWriter(out)
	root.SetOut(clean)
	verb, err := root, checkOpenFiles()
	if err == nil {
		verb, err = root.ExecuteContextC(ctx)
	}
	clean.Flush()
	defer show.FlushStderr()
	if lost := cmp.Or(out.err, show.FlushStdout()); err == nil && lost != nil {
		err = exit.Usage(lost) // printers of tables and help texts ignore write errors
	}
	if err == nil {
		return exit.OK
	}
	err = explainLimit(err)
	if errors.Is(err, context.Canceled) && verb.Context().Err() != nil {
		fmt.Fprintln(show.Stderr(), "sandwich: interrupted")
		return exit.Failed
	}
	if !errors.Is(err, exit.ErrSilent) {
		line := strings.Join(strings.Fields(err.Error()), " ") // errors of libraries may have several lines
		fmt.Fprintln(show.Stderr(), "sandwich:", show.Printable(line+config.Places(verb, line)))
	}
	return exit.Code(err)
}

// checkedWriter keeps the first error, so that a verb whose output was lost does not end with exit
// code 0.
type checkedWriter struct {
	to  io.Writer
	err error
}

func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// New returns the command of the program with the given verbs.
func New(verbs ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "sandwich",
		Short: "Tune and serve language models on CPUs",
		Long: `sandwich measures a CPU machine, searches for the best way to serve a language model on it,
writes the result as a plan, and serves with that plan.`,
		Example: `  sandwich probe                                  # describe and measure this machine
  sandwich tune --model llama.gguf                # write a plan for this machine
  sandwich serve --model llama.gguf               # serve the OpenAI API under that plan
  sandwich run                                    # all steps with the embedded model`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          flags.KnownVerb,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := config.Apply(c); err != nil {
				return err
			}
			endOnHangUp(c)
			if c.HasParent() && c.Parent().Name() == "plan" {
				processGC.set(firstGCForPlans)
			}
			if err := microkernel.HostError(); err != nil {
				return exit.Usage(err)
			}
			return nil
		},
	}
	config.AddFlag(root)
	root.SetFlagErrorFunc(flags.Error)
	root.Version = build.Line()
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(append(verbs, newVersion())...)
	return root
}
