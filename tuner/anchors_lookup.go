package tuner

import (
	"context"

	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/tuner/measure"
)

// lookup measures how long a row of the embedding takes, where it is a table of its own: plain Go
// reads it, which no roof knows of. Of heads that are the embedding nothing is measured.
func (c *calibration) lookup(ctx context.Context, o SimulateOptions) error {
	if o.Model == nil || o.Model.Tied {
		return nil
	}
	for _, w := range o.Shape.Weights {
		if w.Role != plans.RoleEmbed {
			continue
		}
		typ, err := gguf.ParseType(w.Type)
		if err != nil {
			return err
		}
		c.out.Lookup, err = measure.TimeLookup(ctx, o.Model, typ, c.least)
		return err
	}
	return nil
}
