package machine

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
)

// MeasureFlag is the value of --measure: the extent of the measurement of this machine.
type MeasureFlag string

func (m *MeasureFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(m), "measure", "",
		"none; quick: ceilings, about 2 s; full: also the structure between PUs and nodes, 15 s on 2 PUs, 2 minutes "+
			"on 192 or more (default: quick for this machine)")
}

// Apply measures the machine of the profile if it is this one. After an interrupt the profile holds
// the figures measured so far.
func (m MeasureFlag) Apply(ctx context.Context, p *profiles.Profile, live bool) error {
	switch m {
	case "none":
		return nil
	case "", "quick", "full":
	default:
		return exit.Usage(fmt.Errorf("unknown --measure %q; use none, quick or full", string(m)))
	}
	if !live {
		if m == "" {
			return nil
		}
		return exit.Usage(errors.New("--measure measures this machine only; leave it out, or the flag that names " +
			"another machine"))
	}
	if m == "full" {
		update, done := show.FractionBar("measuring")
		defer done()
		return calibrate.Full(ctx, p, calibrate.FullOptions{Progress: update})
	}
	return MeasureCeilings(ctx, p, calibrate.Options{})
}

// MeasureCeilings adds the ceilings of this machine to its profile. After an interrupt the profile
// holds the figures measured so far.
func MeasureCeilings(ctx context.Context, p *profiles.Profile, o calibrate.Options) error {
	update, done := show.FractionBar("measuring")
	defer done()
	o.Progress = update
	return calibrate.Measure(ctx, p, o)
}

// CeilingFlag adds --ceiling: whether to measure the ceilings before a benchmark.
func CeilingFlag(fs *pflag.FlagSet, p *bool) {
	fs.BoolVar(p, "ceiling", true, "measure the ceilings first (about 2 s)")
	flags.Renamed(fs, "roof", "ceiling")
}
