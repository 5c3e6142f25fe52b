package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/footprint"
	"sandwich/plans/bundle"
	"sandwich/plans/export"
)

func newPlanExport() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "export PLAN --to TARGET",
		Short: "Write the service configuration as the flags or manifest of another tool",
		Long: `Write the service configuration of a plan in the format of another tool: ` +
			strings.Join(export.Targets(), ", ") + `.
Comments list the properties that the format cannot express.`,
		Example: `  sandwich plan export llama.plan --to llama-server
  sandwich plan export llama.plan --to systemd >/etc/systemd/system/sandwich.service`,
		Args: flags.ExactArgs(1, "a plan"),
	}
	c.Flags().StringVar(&to, "to", "", "target: "+strings.Join(export.Targets(), ", "))
	c.RunE = func(c *cobra.Command, args []string) error {
		b, err := bundle.Read(args[0])
		if err != nil {
			return exit.Plan(err)
		}
		memory, err := footprint.Serving(&b.Plan, footprint.Context(&b.Plan), footprint.DefaultParallel, false)
		if err != nil {
			return exit.Usage(err)
		}
		text, err := export.Text(b, to, footprint.Total(memory))
		if err != nil {
			return exit.Usage(fmt.Errorf("--to: %w", err))
		}
		_, err = io.WriteString(c.OutOrStdout(), text)
		return err
	}
	return c
}
