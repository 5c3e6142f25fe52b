// Command sandwich probes a machine, tunes a plan for a model on it, and serves the model with that plan.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
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
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "sandwich: interrupted")
		return exitFailed
	}
	if !errors.Is(err, errSilent) {
		fmt.Fprintln(os.Stderr, "sandwich:", strings.Join(strings.Fields(err.Error()), " ")) // one line, whatever a library says
	}
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sandwich",
		Short: "Tune and serve language models on CPUs",
		Long: `sandwich finds out what a CPU machine really is, searches for the best way to serve one
language model on it, writes the answer down as a plan, and serves with it.`,
		Example: `  sandwich probe                                  # what this machine is
  sandwich tune --model llama.gguf                # search, and write a plan for this machine
  sandwich serve --model llama.gguf               # an OpenAI-compatible server under that plan
  sandwich run                                    # all of it with the embedded model`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError(fmt.Errorf("there is no verb %q: see 'sandwich --help'", clip(args[0], 40)))
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError(fmt.Errorf("%w (see '%s --help')", err, c.CommandPath()))
	})
	root.AddCommand(verbs()...)
	return root
}
