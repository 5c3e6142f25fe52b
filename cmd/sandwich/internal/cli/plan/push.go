package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/registry"
	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/planstore"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
	"sandwich/plans/hostkey"
)

func newPlanPush() *cobra.Command {
	var o oci.Options
	c := &cobra.Command{
		Use:   "push PLAN LOCATION",
		Short: "Push a plan to a registry or an OCI layout",
		Long: `Push a plan with its signatures to a registry or an OCI layout, as an artifact with a type of its own, and print the
location with its digest. Equal plans have equal digests.

Without a tag, the tag is derived from the model, the host and the available CPUs, so that jobs on many hosts push to one
location without overwriting each other. 'plan index' then lists the plans for 'serve --plans'.

` + registry.Locations,
		Example: `  sandwich plan push llama.plan registry.example/plans
  sandwich plan push llama.plan registry.example/plans/llama:1
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
		derived := !place.Tagged()
		if derived {
			place = place.WithTag(hostkey.OfBundle(b).Tag())
		}
		pinned, err := place.Push(c.Context(), packed, planstore.Labels(b))
		if err != nil {
			return registry.Error(err)
		}
		if derived {
			show.Notice("pushed as " + place.String())
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
plan that is damaged or not signed by --key is refused, and nothing is written. If the location has no tag latest and one
plan, that plan is pulled.

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
		packed, pinned, err := pullOnly(c.Context(), place)
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

// pullOnly pulls the plan of a location. Without a tag it pulls latest, else the only plan.
func pullOnly(ctx context.Context, place *oci.Place) (packed []byte, pinned string, err error) {
	packed, pinned, err = place.Pull(ctx)
	if !errors.Is(err, oci.ErrMissing) || place.Tagged() {
		return packed, pinned, err
	}
	tags, failed := place.Tags(ctx)
	tags = slices.DeleteFunc(tags, func(tag string) bool { return tag == planstore.IndexTag })
	switch {
	case failed != nil || len(tags) == 0:
		return nil, "", err
	case len(tags) > 1:
		return nil, "", fmt.Errorf("%w; it has %d other tags, such as %s; give one", err, len(tags), tags[0])
	}
	return place.WithTag(tags[0]).Pull(ctx)
}
