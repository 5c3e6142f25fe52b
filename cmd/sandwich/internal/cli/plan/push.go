package plan

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/registry"
	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/plans/bundle"
)

func newPlanPush() *cobra.Command {
	var o oci.Options
	c := &cobra.Command{
		Use:   "push PLAN LOCATION",
		Short: "Push a plan to a registry or an OCI layout",
		Long: `Push a plan with its signatures to a registry or an OCI layout, as an artifact with a type of its own, and print the
location with its digest. Equal plans have equal digests.

` + registry.Locations,
		Example: `  sandwich plan push llama.plan registry.example/plans/llama:1
  sandwich plan push llama.plan oci:releases:llama-1`,
		Args: flags.ExactArgs(2, "a plan and a location"),
	}
	registry.AddFlags(c, &o, time.Minute)
	c.RunE = func(c *cobra.Command, args []string) error {
		place, err := oci.ParsePlace(args[1], o)
		if err != nil {
			return exit.Usage(err)
		}
		packed, b, err := bundle.Pack(args[0])
		if err != nil {
			return exit.Plan(err)
		}
		pinned, err := place.Push(c.Context(), packed, planLabels(b))
		if err != nil {
			return registry.Error(err)
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), pinned)
		return err
	}
	return c
}

func newPlanPull() *cobra.Command {
	var o oci.Options
	var out string
	key := planreport.RequiredKey{Flag: "--key"}
	c := &cobra.Command{
		Use:   "pull LOCATION",
		Short: "Pull a plan from a registry or an OCI layout",
		Long: `Pull a plan with its signatures from a registry or an OCI layout, and print the location with the digest of the plan. A
plan that is damaged or not signed by --key is refused, and nothing is written.

` + registry.Locations,
		Example: `  sandwich plan pull registry.example/plans/llama:1 -o llama.plan
  sandwich plan pull oci:releases@sha256:0f0c6ee1... --key release.pub -o llama.sandwich`,
		Args: flags.ExactArgs(1, "a location"),
	}
	c.Flags().StringVarP(&out, "output", "o", "",
		"folder, or NAME"+bundle.ArchiveSuffix+", to write (default: the last part of the location with "+
			""+bundle.Suffix+")")
	c.Flags().StringVar(&key.Path, "key", "", "PEM file with the public key that must have signed the plan")
	registry.AddFlags(c, &o, time.Minute)
	c.RunE = func(c *cobra.Command, args []string) error {
		place, err := oci.ParsePlace(args[0], o)
		if err != nil {
			return exit.Usage(err)
		}
		if out == "" {
			out = place.Base() + bundle.Suffix
		}
		packed, pinned, err := place.Pull(c.Context())
		if err != nil {
			return registry.Error(err)
		}
		if err := bundle.Unpack(packed, key.Check, out); err != nil {
			return exit.Plan(err)
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), pinned)
		return err
	}
	return c
}

// planLabels returns the labels of a plan in a registry. They do not depend on the date.
func planLabels(b *bundle.Bundle) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title": b.Plan.Name,
		"dev.sandwich.model":             b.Plan.Model.Name,
		"dev.sandwich.fingerprint":       b.Plan.Fingerprint,
		"dev.sandwich.plan":              b.Plan.Digest(),
	}
}
