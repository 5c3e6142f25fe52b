package root

import (
	"fmt"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/flags"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and platform",
		Args:  flags.ExactArgs(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), build.Line())
			return err
		},
	}
}
