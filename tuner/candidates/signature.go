package candidates

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandwich/roofline"
	"sandwich/topotree"
)

// Signature returns a key that is equal for configurations whose forwards cost the same: ranks with
// equal shares and rates, in any order, the same degree and the same barriers.
func (c *Cost) Signature() string {
	var b strings.Builder
	for i := range c.phases {
		ph := &c.phases[i]
		var ranks []string
		for _, r := range ph.ranks {
			text := fmt.Sprintf("%p", r.work) + figure(r.read) + figure(r.alone)
			for _, v := range r.peaks {
				text += figure(v)
			}
			for _, c := range r.caches {
				text += figure(c.Bytes) + figure(c.Read)
			}
			ranks = append(ranks, text)
		}
		slices.Sort(ranks)
		fmt.Fprintf(&b, "%d%s%s;", ph.degree, figure(ph.barrier), strings.Join(ranks, "/"))
	}
	return b.String()
}

// figure formats v with few enough digits that the order of a sum does not matter.
func figure(v float64) string { return " " + strconv.FormatFloat(v, 'e', 8, 64) }

// Switch returns the cost of a change between the phases: a barrier of the workers of both.
func (p *Predictor) Switch(c *Config) time.Duration {
	return duration(2 * p.barrier(c.Prefill.Union(c.Decode)))
}

// Even reports whether all ranks have the same number of active PUs in each phase.
func (c *Config) Even() bool {
	for _, phase := range []topotree.CPUSet{c.Prefill, c.Decode} {
		for _, r := range c.Ranks {
			if r.PUs.Intersect(phase).Count() != c.Ranks[0].PUs.Intersect(phase).Count() {
				return false
			}
		}
	}
	return true
}

// Assumptions returns the assumptions of all predictions. near has the measured fractions of the
// ceilings by weight type, and of attention under "".
func Assumptions(near map[string]roofline.Efficiency) []string {
	who := "kernels reach"
	if _, ok := near[""]; ok {
		who = "products of weight types without anchors reach"
	} else if len(near) > 0 {
		who = "attention, and products of weight types without anchors, reach"
	}
	return []string{
		fmt.Sprintf("%s %g of the ceiling under the default schedules, on every configuration alike", who, nearCeiling),
		"activations stay in caches; norms, rotations and routing cost their barriers and, where the profile has " +
			"rates of caches, what they move",
	}
}
