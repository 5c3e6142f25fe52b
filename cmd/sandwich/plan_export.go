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
		Long: `Write the service configuration of a plan as what people already run takes: ` +
			strings.Join(plans.ExportTargets(), ", ") + `. Comments say what
cannot be expressed there.`,
		Example: `  sandwich plan export llama.plan --to llama-server
  sandwich plan export llama.plan --to systemd >/etc/systemd/system/sandwich.service`,
		Args: exactArgs(1, "a plan"),
	}
	c.Flags().StringVar(&to, "to", "", strings.Join(plans.ExportTargets(), ", "))
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
