package plan

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/registry"
	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/cmd/sandwich/internal/planstore"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
)

func newPlanIndex() *cobra.Command {
	var o oci.Options
	c := &cobra.Command{
		Use:   "index LOCATION|FOLDER",
		Short: "Build the index of the plans of many hosts, for serve --plans",
		Long: `Build the index of all plans of a repository or an OCI layout, or of a folder of plans, and print its location. Each plan is
annotated with its host (CPU model, features, topology digest, available CPUs, fingerprint) and its model, by which
'serve --plans' selects one. The index is built from the plans' content; plans that cannot be read are left out with a
message. Run this command after the last push: jobs push plans under tags of their own and do not edit the index.

The tag of the index is that of the location, by default ` + planstore.IndexTag + `. The index of a folder is the file index.json there; it
only saves reading the plans, so it may be old or missing.

` + registry.Locations,
		Example: `  sandwich plan index registry.example/plans
  sandwich plan index oci:releases:index
  sandwich plan index /var/lib/sandwich/plans`,
		Args: flags.ExactArgs(1, "a location or a folder"),
	}
	registry.AddFlags(c, &o, time.Minute)
	c.RunE = func(c *cobra.Command, args []string) error {
		store, err := planstore.Open(args[0], o)
		if err != nil {
			return exit.Usage(err)
		}
		where, n, err := store.Index(c.Context(), func(err error) { show.Notice(err.Error()) })
		if err != nil {
			return registry.Error(err)
		}
		show.Notice("listed " + message.Plural(n, "plan"))
		_, err = fmt.Fprintln(c.OutOrStdout(), where)
		return err
	}
	return c
}
