package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sandwich/profiles"
	"sandwich/profiles/calibrate"
)

// measureFlag is --measure: how much of this machine is measured.
type measureFlag string

func (m *measureFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(m), "measure", "", "measure roofs: none, quick (about 2 s) or full: structure too, up to 2 minutes (default quick for this machine)")
}

// apply measures the ceilings of the profile's machine, if it is this one.
func (m measureFlag) apply(ctx context.Context, p *profiles.Profile, live bool) error {
	switch m {
	case "none":
		return nil
	case "", "quick", "full":
	default:
		return usageError(fmt.Errorf("unknown --measure %q: use none, quick or full", string(m)))
	}
	if !live {
		if m == "" {
			return nil
		}
		return usageError(errors.New("only the machine this runs on can be measured: leave --measure out, or the flag that names another machine"))
	}
	if m != "full" {
		return measureRoofs(ctx, p, calibrate.Options{})
	}
	update, done := fractionProgress("measuring")
	defer done()
	return calibrate.Full(ctx, p, calibrate.FullOptions{Progress: update})
}

// measureRoofs adds the ceilings of this machine to its profile.
func measureRoofs(ctx context.Context, p *profiles.Profile, o calibrate.Options) error {
	update, done := fractionProgress("measuring")
	defer done()
	o.Progress = update
	return calibrate.Measure(ctx, p, o)
}
