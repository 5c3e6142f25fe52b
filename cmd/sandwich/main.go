// Command sandwich probes a machine, tunes a plan for a model on it, and serves the model with that
// plan.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/microkernel"
)

func main() {
	processGC.set(firstGC)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // a second Ctrl-C ends the program at once
	code := run(ctx, os.Args[1:])
	cancel()
	os.Exit(code)
}

// run executes one command line and returns its exit code; command tests call it too.
func run(ctx context.Context, args []string) int {
	root := newRoot()
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
		err = usageError(lost) // printers of tables and help texts ignore write errors
	}
	if err == nil {
		return exitOK
	}
	err = explainLimit(err)
	if errors.Is(err, context.Canceled) && verb.Context().Err() != nil {
		fmt.Fprintln(show.Stderr(), "sandwich: interrupted")
		return exitFailed
	}
	if !errors.Is(err, errSilent) {
		line := strings.Join(strings.Fields(err.Error()), " ") // errors of libraries may have several lines
		fmt.Fprintln(show.Stderr(), "sandwich:", show.Printable(line))
	}
	return exitCode(err)
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

// knownVerb rejects an unknown verb and names the verb that was probably meant.
func knownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		meant = fmt.Sprintf(" did you mean '%s %s'?", c.CommandPath(), near[0])
	}
	return usageError(fmt.Errorf("unknown verb %q:%s see '%s --help'", show.Clip(args[0], 40), meant,
		c.CommandPath()))
}

func newRoot() *cobra.Command {
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
		Args:          knownVerb,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			endOnHangUp(c)
			if c.HasParent() && c.Parent().Name() == "plan" {
				processGC.set(firstGCForPlans)
			}
			if err := microkernel.HostError(); err != nil {
				return usageError(err)
			}
			return nil
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(verbs()...)
	return root
}
