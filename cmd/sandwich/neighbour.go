package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/measure"
)

// newNeighbor returns the command of the child process of bench llm --neighbour. It is told "begin"
// and "end" on its input, answers with the part of the PU's time that it took in between, and ends
// with its input.
func newNeighbor() *cobra.Command {
	return &cobra.Command{
		Use:   "neighbour PU:PART%/PERIOD",
		Short: "Take a part of a PU's time (bench llm --neighbour starts this)",
		Long: `Take a part of a PU's time: the child process of bench llm --neighbour. It is told "begin" and "end", one a line, answers an
"end" with the part that it got, and ends with its input.`,
		Example: "  (echo begin; sleep 1; echo end; sleep 0.1) | sandwich neighbour 1:50%",
		Hidden:  true,
		Args:    exactArgs(1, "a PU and a part of its time, such as 1:50%"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := parseNeighbor(args[0])
			if err != nil {
				return usageError(err)
			}
			return usageError(n.Obey(c.InOrStdin(), c.OutOrStdout()))
		},
	}
}

// parseNeighbor parses the value of --neighbour, which is also the argument of the child process.
func parseNeighbor(text string) (measure.Neighbor, error) {
	n, err := measure.ParseNeighbor(text)
	if err != nil {
		err = fmt.Errorf("--neighbour %s: %w", show.Clip(text, 40), err)
	}
	return n, err
}

// startNeighbor starts this program as the neighbor. The child ends with
// this process.
func startNeighbor(ctx context.Context, n measure.Neighbor) (*measure.NeighborProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, self, "neighbour", n.String())
	command.Stderr = os.Stderr
	p, err := measure.StartNeighbor(n, command)
	if errors.Is(err, measure.ErrNoNeighbor) {
		return nil, usageError(fmt.Errorf("--neighbour %s: %w", n, err))
	}
	return p, err
}
