// Package fleet has the verb fleet, which reports on the plans of many hosts.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/registry"
	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/cmd/sandwich/internal/planstore"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
)

// NewFleet returns the verb fleet.
func NewFleet() *cobra.Command {
	c := &cobra.Command{
		Use:     "fleet",
		Short:   "Report on the plans of many hosts",
		Example: "  sandwich fleet report registry.example/plans",
		Args:    flags.KnownVerb,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newReport())
	return c
}

func newReport() *cobra.Command {
	var o oci.Options
	c := &cobra.Command{
		Use:   "report LOCATION|FOLDER",
		Short: "List the kinds of host with their plans, gains and gates",
		Long: `List the plans of an index that 'plan index' built, or of a folder of plans, by kind of host: architecture, CPU model,
features and topology. 'probe --format label' prints the kind of a host. The gains are those of the tuning run over the
default plan. A gain passes its gate if its confidence interval lies above the noise of two equal arms.

` + registry.Locations,
		Example: `  sandwich fleet report registry.example/plans
  sandwich fleet report ./plans --format json`,
		Args: flags.ExactArgs(1, "a location or a folder"),
	}
	registry.AddFlags(c, &o, time.Minute)
	format := flags.Format(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		store, err := planstore.Open(args[0], o)
		if err != nil {
			return exit.Usage(err)
		}
		rows, err := report(c.Context(), store)
		if err != nil {
			return registry.Error(err)
		}
		if *format == "json" {
			return show.JSON(c.OutOrStdout(), rows)
		}
		return printRows(c.OutOrStdout(), rows)
	}
	return c
}

// row is a plan of the report. Its JSON form is stable.
type row struct {
	Kind     string    `json:"kind"`
	CPU      string    `json:"cpu"`
	PUs      int       `json:"pus"`
	Usable   string    `json:"available_pus"`
	Model    string    `json:"model"`
	Plan     string    `json:"plan"`
	Digest   string    `json:"digest"`
	State    string    `json:"state"`
	Measured string    `json:"measured"`
	Outcomes []outcome `json:"outcomes"`
}

// outcome is the result of a phase.
type outcome struct {
	evidence.Outcome
	Gate string `json:"gate"`
}

// Values of outcome.Gate.
const (
	gatePassed = "passed"
	gateOpen   = "not significant"
	gateKept   = "default kept"
)

// report reads the plans of a store. Plans that cannot be read are noted.
func report(ctx context.Context, s planstore.Store) ([]row, error) {
	note := func(err error) { show.Notice("note: " + err.Error()) }
	list, err := s.List(ctx, note)
	if err != nil {
		return nil, err
	}
	rows := []row{}
	for _, e := range list {
		packed, err := s.Read(ctx, e)
		var b *bundle.Bundle
		if err == nil {
			b, err = bundle.Parse(packed)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			note(fmt.Errorf("left out %s: %w", e.Title, err))
			continue
		}
		rows = append(rows, rowOf(e, b))
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Model, b.Model),
			cmp.Compare(b.Measured, a.Measured))
	})
	return rows, nil
}

func rowOf(e planstore.Entry, b *bundle.Bundle) row {
	r := row{Kind: e.Key.Kind(), CPU: b.Host.Host.CPUModel, PUs: b.Host.Machine.Tree.PUs(),
		Usable: b.Host.Allowed().String(), Model: b.Plan.Model.Name, Plan: e.Title, Digest: b.Plan.Digest(),
		State: string(b.State()), Measured: b.Evidence.Created, Outcomes: []outcome{}}
	for _, o := range b.Evidence.Outcomes() {
		gate := gateOpen
		if o.Kept {
			gate = gateKept
		} else if o.Gain.Beats(o.Noise) {
			gate = gatePassed
		}
		r.Outcomes = append(r.Outcomes, outcome{o, gate})
	}
	return r
}

// printRows writes the report as a table. The columns of a kind of host are filled in its first row
// only.
func printRows(w io.Writer, rows []row) error {
	cells := make([][]string, len(rows))
	kinds := map[string]bool{}
	for i, r := range rows {
		host := []string{r.Kind, r.CPU, fmt.Sprint(r.PUs)}
		if kinds[r.Kind] {
			host = []string{"", "", ""}
		}
		kinds[r.Kind] = true
		day, _, _ := strings.Cut(r.Measured, "T")
		cells[i] = append(host, r.Usable, r.Model, r.Plan, day, r.State, r.gain("prefill"), r.gain("decode"))
	}
	if err := show.Table(w, []string{"kind", "CPU", "PUs", "available", "model", "plan", "measured", "state", "prefill",
		"decode"}, cells, 2); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s for %s of host\n", message.Plural(len(rows), "plan"),
		message.Plural(len(kinds), "kind"))
	return err
}

// gain describes the gain of a phase and its gate.
func (r *row) gain(phase string) string {
	for _, o := range r.Outcomes {
		if o.Phase != phase {
			continue
		}
		if o.Gate == gateKept {
			return o.Gate
		}
		return show.Percent(o.Gain.Median) + ", " + o.Gate
	}
	return "not measured"
}
