package ranking

import (
	"slices"

	"sandwich/internal/num"
	"sandwich/plans/evidence"
	"sandwich/roofline"
)

// Calibration has the fractions of its ceilings that each weight type reaches on this machine by
// three measured products (Agent.xpu appendix B), and the errors of predictions of other products.
type Calibration struct {
	Types    map[string]roofline.Efficiency // by weight type; a type is absent if the assumed figures predict better
	Measured []string                       // sentences for the user
	Errors   []float64                      // relative errors of products that are not anchors, ascending
}

func (c *Calibration) known() bool { return c != nil && len(c.Types) > 0 }

// near returns the fractions of the ceilings by kind of op, or nil without a calibration.
func (c *Calibration) near() map[string]roofline.Efficiency {
	if c == nil {
		return nil
	}
	return c.Types
}

// Error returns the median and the 90th percentile of the errors, or nil if there are none.
func (c *Calibration) Error() *evidence.TraceErrors {
	if c == nil || len(c.Errors) == 0 {
		return nil
	}
	return &evidence.TraceErrors{Products: len(c.Errors), Median: num.Median(c.Errors),
		P90: num.Quantile(c.Errors, 0.9)}
}

// Add adds the weight types of another calibration that this one lacks.
func (c *Calibration) Add(other *Calibration) {
	if c.Types == nil {
		c.Types = map[string]roofline.Efficiency{}
	}
	for typ, near := range other.Types {
		if _, known := c.Types[typ]; !known {
			c.Types[typ] = near
		}
	}
	c.Measured = append(c.Measured, other.Measured...)
	c.Errors = append(c.Errors, other.Errors...)
	slices.Sort(c.Errors)
}
