package llm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/measure/llm"
)

// NewNeighbor returns the verb of the child process of bench llm --neighbor. It reads "begin" and
// "end" from standard input, answers each "end" with the share of the PU's time that it took
// since "begin", and exits at the end of the input.
func NewNeighbor() *cobra.Command {
	return &cobra.Command{
		Use:   "neighbor PU:PART%/PERIOD",
		Short: "Take a share of a PU's time (started by bench llm --neighbor)",
		Long: `Take a share of a PU's time, as the child process of bench llm --neighbor. The process reads lines "begin" and "end",
answers each "end" with the share that it took, and exits at the end of the input.`,
		Example: "  (echo begin; sleep 1; echo end; sleep 0.1) | sandwich neighbor 1:50%",
		Hidden:  true,
		Args:    flags.ExactArgs(1, "a PU and a part of its time, such as 1:50%"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := parseNeighbor(args[0])
			if err != nil {
				return exit.Usage(err)
			}
			return exit.Usage(n.Obey(c.InOrStdin(), c.OutOrStdout()))
		},
	}
}

// parseNeighbor parses the value of --neighbor, which is also the argument of the child process.
func parseNeighbor(text string) (llm.Neighbor, error) {
	n, err := llm.ParseNeighbor(text)
	if err != nil {
		err = fmt.Errorf("--neighbor %s: %w", show.Clip(text, 40), err)
	}
	return n, err
}

// startNeighbor starts this program as the neighbor process. The child exits when this process
// does.
func startNeighbor(ctx context.Context, n llm.Neighbor) (*llm.NeighborProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, self, "neighbor", n.String())
	command.Stderr = os.Stderr
	p, err := llm.StartNeighbor(n, command)
	if errors.Is(err, llm.ErrNoNeighbor) {
		return nil, exit.Usage(fmt.Errorf("--neighbor %s: %w", n, err))
	}
	return p, err
}
