package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/plans"
)

func newPlanExport() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "export PLAN --to TARGET",
		Short: "Write the service configuration as the flags or manifest of another tool",
		Long: `Write the service configuration of a plan in the format of another tool: ` +
			strings.Join(plans.ExportTargets(), ", ") + `.
Comments list the properties that the format cannot express.`,
		Example: `  sandwich plan export llama.plan --to llama-server
  sandwich plan export llama.plan --to systemd >/etc/systemd/system/sandwich.service`,
		Args: exactArgs(1, "a plan"),
	}
	c.Flags().StringVar(&to, "to", "", "target: "+strings.Join(plans.ExportTargets(), ", "))
	c.RunE = func(c *cobra.Command, args []string) error {
		b, err := plans.Read(args[0])
		if err != nil {
			return planError(err)
		}
		memory, err := servingMemory(&b.Plan, servedContext(&b.Plan), defaultParallel, false)
		if err != nil {
			return usageError(err)
		}
		text, err := plans.Export(b, to, totalMemory(memory))
		if err != nil {
			return usageError(fmt.Errorf("--to: %w", err))
		}
		_, err = io.WriteString(c.OutOrStdout(), text)
		return err
	}
	return c
}
