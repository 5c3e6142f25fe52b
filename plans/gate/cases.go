package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sandwich/plans"
	"sandwich/runtime/phase"
)

// Case is a forward that the gate measures with both plans.
type Case struct {
	Prefill bool
	Rows    int    // tokens of a prompt, or sequences that decode together
	Why     string // "always", or how the plans differ at this size
}

// Name returns the name of the row, as in the evidence of a tuned plan.
func (c Case) Name() string {
	if c.Prefill {
		return fmt.Sprintf("pp%d", c.Rows)
	}
	return fmt.Sprintf("tg batch %d", c.Rows)
}

// ParseCase parses the result of Name. It returns false for other names, which bundles may contain.
func ParseCase(name string) (c Case, ok bool) {
	const limit = 1 << 20
	for _, format := range []string{"pp%d", "tg batch %d"} {
		c = Case{Prefill: strings.HasPrefix(format, "pp")}
		_, err := fmt.Sscanf(name, format, &c.Rows)
		if err == nil && c.Rows > 0 && c.Rows <= limit && c.Name() == name {
			return c, true
		}
	}
	return Case{}, false
}

// Phase returns the name of the phase of the case.
func (c Case) Phase() string {
	if c.Prefill {
		return phase.Prefill.String()
	}
	return phase.Decode.String()
}

// Sizes of the cases that are always measured, and the maximum number of further cases per phase.
const (
	prompt    = 512
	batchRows = 8
	maxMore   = 3
)

// Cases returns the forwards to measure: a prompt of 512 tokens, and for models that generate one
// sequence and a batch. It adds numbers of rows at which the schedules of the plans differ most, by
// the bytes of the weights concerned that no earlier case covers.
func Cases(a, b *plans.Plan) []Case {
	context := min(orMany(a.Model.Context), orMany(b.Model.Context))
	out, phases := []Case{{true, min(prompt, context), "always"}}, []bool{true}
	if !a.Model.Pooled() {
		out, phases = append(out, Case{false, 1, "always"}), append(phases, false)
		if batch := min(batchRows, a.BatchMax, b.BatchMax); batch > 1 {
			out = append(out, Case{false, batch, "always"})
		}
	}
	for _, prefill := range phases {
		var own []Case
		for _, c := range out {
			if c.Prefill == prefill {
				own = append(own, c)
			}
		}
		out = append(out, more(a, b, prefill, own, context)...)
	}
	return out
}

// orMany returns n, or a full prompt if n is 0.
func orMany(n int) int {
	if n == 0 {
		return prompt
	}
	return n
}

// difference is a range of M in which the plans have distinct schedules for a weight.
type difference struct {
	lo, hi int
	bytes  float64
	shown  bool
}

func (d *difference) covers(m int) bool { return m >= d.lo && m <= d.hi }

// more returns the additional cases of a phase.
func more(a, b *plans.Plan, prefill bool, own []Case, context int) (out []Case) {
	x, y, limit := &a.Decode, &b.Decode, min(a.BatchMax, b.BatchMax)
	if prefill {
		x, y, limit = &a.Prefill, &b.Prefill, min(a.Chunk, b.Chunk, context)
	}
	list := differences(x, y, limit)
	show := func(m int) {
		for i := range list {
			list[i].shown = list[i].shown || list[i].covers(m)
		}
	}
	for _, c := range own {
		if !prefill {
			show(c.Rows)
			continue
		}
		show(min(c.Rows, a.Chunk, b.Chunk)) // a prompt runs in chunks
	}
	for range maxMore {
		best, bytes := 0, 0.0
		for i := range list {
			if sum := gain(list, list[i].hi); sum > bytes {
				best, bytes = list[i].hi, sum
			}
		}
		if best == 0 {
			break
		}
		show(best)
		out = append(out, Case{prefill, best, "schedules differ"})
	}
	slices.SortFunc(out, func(a, b Case) int { return cmp.Compare(a.Rows, b.Rows) })
	return out
}

// gain returns the bytes of the differences that m rows would cover and that are not covered yet.
func gain(list []difference, m int) (sum float64) {
	for i := range list {
		if !list[i].shown && list[i].covers(m) {
			sum += list[i].bytes
		}
	}
	return sum
}

// differences compares the tables of a phase and returns the ranges of M in which they differ.
func differences(x, y *plans.Phase, limit int) (out []difference) {
	for i := range x.Tables {
		t := &x.Tables[i]
		u, ok := y.TableOf(t.Class, t.WeightKey)
		if !ok {
			continue // the plans divide the weight differently: every row covers it
		}
		starts := []int{1}
		for _, r := range slices.Concat(t.Rules, u.Rules) {
			starts = append(starts, r.MLo)
		}
		slices.Sort(starts)
		starts = slices.Compact(starts)
		for j, lo := range starts {
			hi := limit
			if j+1 < len(starts) {
				hi = min(limit, starts[j+1]-1)
			}
			s, _ := x.LookupOf(t.Class, t.WeightKey, lo)
			r, _ := y.LookupOf(t.Class, t.WeightKey, lo)
			if lo <= hi && s != r {
				out = append(out, difference{lo: lo, hi: hi, bytes: float64(t.N) * float64(t.K)})
			}
		}
	}
	return out
}
