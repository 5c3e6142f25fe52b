package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sandwich/plans"
	"sandwich/runtime/phase"
)

// Case is a forward that is measured under both plans.
type Case struct {
	Prefill bool
	Rows    int    // tokens of a prompt, or sequences that decode together
	Why     string // always, or what differs there
}

// Name is that of the row, in the words of a tuned plan's evidence.
func (c Case) Name() string {
	if c.Prefill {
		return fmt.Sprintf("pp%d", c.Rows)
	}
	return fmt.Sprintf("tg batch %d", c.Rows)
}

// ParseCase reads a name that Name wrote; false for others, which bundles may hold too.
func ParseCase(name string) (c Case, ok bool) {
	const most = 1 << 20
	for _, format := range []string{"pp%d", "tg batch %d"} {
		c = Case{Prefill: strings.HasPrefix(format, "pp")}
		_, err := fmt.Sscanf(name, format, &c.Rows)
		if err == nil && c.Rows > 0 && c.Rows <= most && c.Name() == name {
			return c, true
		}
	}
	return Case{}, false
}

// Phase of the case.
func (c Case) Phase() string {
	if c.Prefill {
		return phase.Prefill.String()
	}
	return phase.Decode.String()
}

// Sizes of the cases that are always measured, and how many more a phase may have.
const (
	prompt    = 512
	batchRows = 8
	maxMore   = 3
)

// Cases are pp512, one sequence, a batch (of a model that generates), and where the plans have
// other schedules the numbers of rows that show most of that: each counts the bytes of the weights
// whose schedules differ there and that no row before it shows.
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

func orMany(n int) int {
	if n == 0 {
		return prompt
	}
	return n
}

// difference is a range of M in which a weight has two schedules.
type difference struct {
	lo, hi int
	bytes  float64
	shown  bool
}

func (d *difference) covers(m int) bool { return m >= d.lo && m <= d.hi }

func more(a, b *plans.Plan, prefill bool, own []Case, context int) (out []Case) {
	x, y, most := &a.Decode, &b.Decode, min(a.BatchMax, b.BatchMax)
	if prefill {
		x, y, most = &a.Prefill, &b.Prefill, min(a.Chunk, b.Chunk, context)
	}
	list := differences(x, y, most)
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
		show(min(c.Rows, a.Chunk, b.Chunk)) // the chunks of a prompt
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

// gain is how much of what was not shown yet a number of rows would show.
func gain(list []difference, m int) (sum float64) {
	for i := range list {
		if !list[i].shown && list[i].covers(m) {
			sum += list[i].bytes
		}
	}
	return sum
}

// differences lays the tables of a phase over each other.
func differences(x, y *plans.Phase, most int) (out []difference) {
	for i := range x.Tables {
		t := &x.Tables[i]
		u, ok := y.TableOf(t.Class, t.WeightKey)
		if !ok {
			continue // cut otherwise: every row shows it
		}
		starts := []int{1}
		for _, r := range slices.Concat(t.Rules, u.Rules) {
			starts = append(starts, r.MLo)
		}
		slices.Sort(starts)
		starts = slices.Compact(starts)
		for j, lo := range starts {
			hi := most
			if j+1 < len(starts) {
				hi = min(most, starts[j+1]-1)
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
