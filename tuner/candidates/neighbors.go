package candidates

import (
	"fmt"

	"sandwich/topotree"
)

// Neighbors returns the configurations one step away: without one PU of a rank in one phase or in
// both (which also moves weights to the other ranks), with one more PU in decode, or without one
// rank. Trees remove the same PUs from equally colored nodes; Neighbors can also avoid a slow node
// or a throttled core that has no color of its own.
func (s *Space) Neighbors(c *Config) (out []*Config) {
	add := func(ranks []topotree.CPUSet, prefill, decode topotree.CPUSet, step string) {
		if s.alike && !prefill.Equal(decode) {
			return
		}
		o := c.Origin
		if o.Always != "" {
			o.Section, o.Variant, o.Always = o.Always, step, ""
		} else if o.Variant != "" {
			o.Variant += ", " + step
		} else {
			o.Variant = step
		}
		next, ok := newConfig(s.site, ranks, prefill, decode, o)
		if ok && s.site.fits(prefill, decode) && s.capacity.fits(next) == nil {
			out = append(out, next)
		}
	}
	full := make([]topotree.CPUSet, len(c.Ranks))
	for i, r := range c.Ranks {
		full[i] = r.PUs
	}
	for i, r := range c.Ranks {
		decode, prefill := r.PUs.Intersect(c.Decode), r.PUs.Intersect(c.Prefill)
		if len(c.Ranks) > 1 {
			rest := append(append([]topotree.CPUSet{}, full[:i]...), full[i+1:]...)
			add(rest, c.Prefill.Minus(r.PUs), c.Decode.Minus(r.PUs),
				fmt.Sprintf("without the rank on PUs %s", r.PUs.Brief()))
		}
		for _, pu := range ends(decode) {
			one := topotree.NewCPUSet(pu)
			add(full, c.Prefill, c.Decode.Minus(one), fmt.Sprintf("PU %d not in decode", pu))
			add(full, c.Prefill.Minus(one), c.Decode.Minus(one), fmt.Sprintf("without PU %d", pu))
		}
		for _, pu := range ends(prefill.Minus(decode)) {
			one := topotree.NewCPUSet(pu)
			add(full, c.Prefill, c.Decode.Union(one), fmt.Sprintf("PU %d in decode too", pu))
			add(full, c.Prefill.Minus(one), c.Decode, fmt.Sprintf("PU %d not in prefill", pu))
		}
	}
	return out
}

// ends returns the first and the last PU of a set. The PUs between usually behave like one of them.
func ends(set topotree.CPUSet) []int {
	switch set.Count() {
	case 0:
		return nil
	case 1:
		return []int{set.First()}
	}
	return []int{set.First(), set.Last()}
}
