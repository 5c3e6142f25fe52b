package plan

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
)

func newPlanExplain() *cobra.Command {
	var svg string
	var rejected bool
	c := &cobra.Command{
		Use:   "explain PLAN",
		Short: "Explain how a plan was found: candidates, winner, and its lead over the others",
		Long: `Explain how a plan was found, from the record in the plan: the trees, sections and configurations that were considered,
their simulated speed, the arms that were raced, the winner with its lead over the other arms, the differences that are
noise, and the memory that serving takes. --svg draws the machine's tree with the PUs of both phases.`,
		Example: `  sandwich plan explain llama.plan --svg llama.svg`,
		Args:    flags.ExactArgs(1, "a plan"),
	}
	c.Flags().StringVar(&svg, "svg", "", "SVG file to write the machine with both phases to")
	c.Flags().BoolVar(&rejected, "rejected", false, "list the rejected candidates with reasons")
	format := flags.Format(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		b, err := bundle.Read(args[0])
		if err != nil {
			return exit.Plan(err)
		}
		if svg != "" {
			if err := planreport.WritePhases(c.Context(), svg, b); err != nil {
				return err
			}
		}
		s, err := planreport.NewStory(b)
		if err != nil {
			return err
		}
		if *format == "json" {
			return show.JSON(c.OutOrStdout(), s)
		}
		if err := s.Print(c.OutOrStdout(), b); err != nil || !rejected {
			return err
		}
		return printRejected(c.OutOrStdout(), b)
	}
	return c
}

// printRejected lists the candidates that were rejected before the plan was written.
func printRejected(w io.Writer, b *bundle.Bundle) error {
	for _, r := range b.Evidence.Rejected {
		if _, err := fmt.Fprintf(w, "rejected %s: %s\n", show.Printable(r.Candidate),
			show.Printable(r.Reason)); err != nil {
			return err
		}
	}
	return nil
}
