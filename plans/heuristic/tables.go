package heuristic

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
	"sandwich/plans"
)

// rangeEnds lists the last M of each range of rows. The last, open range is laid out for openM
// rows.
var rangeEnds = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 64, 96, 128, 192, 256, 384, 512}

const openM = 1024

// widenFrom returns the M from which a slice of weights is dequantized once instead of in every
// tile.
func widenFrom(t microkernel.WeightType) int {
	switch {
	case t.Quantized():
		return streamTo + 1
	case t.Desc().Float == qtype.Half:
		return 97
	}
	return 257
}

// rules returns the rules of a weight. Adjacent ranges with equal schedules become one rule.
func (h host) rules(k plans.WeightKey, t microkernel.WeightType, c microkernel.Compute) ([]plans.Rule, error) {
	var rules []plans.Rule
	lo := 1
	for i := 0; i <= len(rangeEnds); i++ {
		hi, m := 0, openM
		if i < len(rangeEnds) {
			hi, m = rangeEnds[i], rangeEnds[i]
		}
		s, err := h.schedule(k, t, c, m)
		if err != nil {
			return nil, err
		}
		if n := len(rules); n > 0 && rules[n-1].Schedule == s {
			rules[n-1].MHi = hi
		} else {
			rules = append(rules, plans.Rule{MLo: lo, MHi: hi, Schedule: s})
		}
		lo = hi + 1
	}
	return rules, nil
}

// schedule returns the default schedule for m rows.
func (h host) schedule(k plans.WeightKey, t microkernel.WeightType, c microkernel.Compute, m int) (plans.Schedule,
	error) {
	widen := c == microkernel.ComputeF32 && t != microkernel.F32 && m >= widenFrom(t) && h.isa.Generates()
	s := plans.Schedule{Widen: widen}
	b := t
	if s.Widen {
		b = microkernel.F32
	}
	var err error
	if s.Kernel, err = h.kernel(b, c, m, k.N, s.Widen); err != nil {
		return s, err
	}
	s.Kernel = h.Form(s.Kernel, m, s.Widen)
	h.layOut(&s, k, t, m)
	return s, nil
}

// addDefaults adds the weights and the tables of the main class. Both phases get the same rules,
// since without measurements they differ by M only.
func addDefaults(p *plans.Plan, o Options, h host) error {
	for _, k := range p.Model.Unique() {
		c, err := o.pathOf(k, h)
		if err != nil {
			return fmt.Errorf("weight %s: %w", k, err)
		}
		if t, err := microkernel.ParseWeightType(k.Type); err == nil && o.Device && !p.Model.OnlyRouted(k) {
			c = h.devicePath(t, c)
		}
		p.Weights = append(p.Weights, plans.WeightPlan{WeightKey: k, Compute: c})
	}
	return addTables(p, h, "")
}

// addTables adds the tables of a class of workers.
func addTables(p *plans.Plan, h host, class string) error {
	shapes, err := p.TableShapes(p.Prefill.PUs)
	if err != nil {
		return err
	}
	for _, c := range shapes {
		rules, err := h.table(c)
		if err != nil {
			return fmt.Errorf("weight %s: %w", c.WeightKey, err)
		}
		p.Prefill.Tables = append(p.Prefill.Tables, plans.Table{WeightKey: c.WeightKey, Class: class, Rules: rules})
		p.Decode.Tables = append(p.Decode.Tables, plans.Table{WeightKey: c.WeightKey, Class: class,
			Rules: slices.Clone(rules)})
	}
	return nil
}

// table returns the rules of a table shape for the largest group of threads that shares such a
// product.
func (h host) table(c plans.TableShape) ([]plans.Rule, error) {
	t, err := microkernel.ParseWeightType(c.Type)
	if err != nil {
		return nil, err
	}
	h.Threads = c.Threads
	return h.rules(c.WeightKey, t, c.Compute)
}
