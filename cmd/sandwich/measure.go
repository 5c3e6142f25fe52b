package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
)

// measureFlag is the value of --measure: the extent of the measurement of this machine.
type measureFlag string

func (m *measureFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(m), "measure", "",
		"none; quick: ceilings, about 2 s; full: also the structure between PUs and nodes, 15 s on 2 PUs, 2 minutes "+
			"on 192 or more (default: quick for this machine)")
}

// apply measures the machine of the profile if it is this one. After an interrupt the profile holds
// the figures measured so far.
func (m measureFlag) apply(ctx context.Context, p *profiles.Profile, live bool) error {
	switch m {
	case "none":
		return nil
	case "", "quick", "full":
	default:
		return usageError(fmt.Errorf("unknown --measure %q; use none, quick or full", string(m)))
	}
	if !live {
		if m == "" {
			return nil
		}
		return usageError(errors.New("--measure measures this machine only; leave it out, or the flag that names " +
			"another machine"))
	}
	if m == "full" {
		update, done := show.FractionBar("measuring")
		defer done()
		return calibrate.Full(ctx, p, calibrate.FullOptions{Progress: update})
	}
	return measureCeilings(ctx, p, calibrate.Options{})
}

// measureCeilings adds the ceilings of this machine to its profile. After an interrupt the profile
// holds the figures measured so far.
func measureCeilings(ctx context.Context, p *profiles.Profile, o calibrate.Options) error {
	update, done := show.FractionBar("measuring")
	defer done()
	o.Progress = update
	return calibrate.Measure(ctx, p, o)
}
