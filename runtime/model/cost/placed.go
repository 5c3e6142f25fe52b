package cost

import (
	"fmt"
	"slices"
	"strings"

	"sandwich/plans"
	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/runtime/phase"
	"sandwich/topotree"
)

// Placed describes where ops should run for a range of rows, and why. Its JSON is stable.
type Placed struct {
	Phase   string   `json:"phase"` // prefill, decode
	From    int      `json:"from"`  // rows
	To      int      `json:"to"`    // last row count of the range
	Ops     []string `json:"ops"`
	Compute string   `json:"compute"`
	Type    string   `json:"type,omitempty"` // of the weights
	Regime  string   `json:"regime"`
	Target  string   `json:"target"`
	Split   string   `json:"split,omitempty"` // among heterogeneous workers, for From rows
	Why     string   `json:"why"`             // for From rows
	Seconds float64  `json:"seconds"`         // of one op at the ceiling, for From rows
	Units   bool     `json:"-"`               // other units than the cores take part

	part string // kind and name of the op, and index of its part
}

// RowsText returns the range of rows as text, such as "1-8".
func (p *Placed) RowsText() string {
	if p.From == p.To {
		return fmt.Sprint(p.From)
	}
	return fmt.Sprintf("%d-%d", p.From, p.To)
}

// Placer determines where the ops of a model should run on a machine, by the three regimes of
// SMEPilot section 3.2.
type Placer struct {
	Model   *model.Model
	Plan    *plans.Plan
	Machine *roofline.Machine
	Compute string // path of all weights and of attention; "": that of the plan
	Context int    // positions before the rows of each sequence

	Alone      bool    // no op is split among heterogeneous workers
	Sequential bool    // stages of attention do not overlap
	Packing    float64 // additional times that the bytes of weights move, for packing during the op
}

// Phases lists the names of a plan's phases, by phase.Phase.
var Phases = [phase.Count]string{phase.Prefill.String(), phase.Decode.String()}

// phase returns the plan of a phase and the rows of a forward with m rows: of one sequence in
// prefill, of m sequences in decode.
func (p *Placer) phase(name string, m int) (*plans.Phase, Rows, error) {
	of, err := phase.Parse(name)
	if err != nil {
		return nil, Rows{}, err
	}
	if of == phase.Prefill {
		return &p.Plan.Prefill, Rows{Spans: []Span{{Pos: p.Context, N: m}}, Heads: 1}, nil
	}
	rows := Rows{Heads: m}
	for range m {
		rows.Spans = append(rows.Spans, Span{Pos: p.Context, N: 1})
	}
	return &p.Plan.Decode, rows, nil
}

// At returns the placements of the ops of a forward with m rows. It fails if the profile has no
// ceiling for an op.
func (p *Placer) At(name string, m int) ([]Placed, error) {
	_, _, out, err := p.Place(name, m)
	return out, err
}

// Place returns the distinct ops of a forward with m rows, for each op of the model its index among
// them, and the placements of all their parts in order.
func (p *Placer) Place(name string, m int) (works []OpWork, at []int, out []Placed, err error) {
	of, rows, err := p.phase(name, m)
	if err != nil {
		return nil, nil, nil, err
	}
	if works, at, err = opWorks(p.Model, p.Plan, of, rows); err != nil {
		return nil, nil, nil, err
	}
	set := of.PUs
	ceilings := map[string]roofline.Ceiling{}
	for i := range works {
		for k, part := range works[i].Parts {
			ceiling, err := p.ceiling(set, &part, ceilings)
			if err != nil {
				return nil, nil, nil, err
			}
			if part.Type != "" {
				part.Bytes *= 1 + p.Packing
			}
			one := ceiling.Place(part.Work, part.Output)
			if part.Between > 0 {
				one = ceiling.Stages(one, part.Step, p.vectors(set), p.Sequential)
			}
			placed := Placed{Phase: name, From: m, To: m, Ops: []string{works[i].Op}, Compute: part.Compute,
				Type: part.Type, Regime: one.Regime.String(), Target: one.Target(), Split: one.SplitText(),
				Why: one.Why, Seconds: one.Seconds, Units: one.OffCores(),
				part: fmt.Sprint(works[i].Kind, works[i].Op, k)}
			if part.Matrix {
				placed.Target = "the matrix unit of each core"
			}
			out = append(out, placed)
		}
	}
	return works, at, out, nil
}

// ceiling returns the ceiling of a part. It changes the path of the part to p.Compute if that is
// set.
func (p *Placer) ceiling(
	set topotree.CPUSet, part *OpPart, known map[string]roofline.Ceiling,
) (roofline.Ceiling, error) {
	if p.Compute != "" && part.FLOP > 0 {
		part.Compute = p.Compute
	}
	key := fmt.Sprint(part.Compute, part.Matrix)
	if r, ok := known[key]; ok {
		return r, nil
	}
	r, err := p.Machine.Ceiling(set, roofline.Path{ISA: p.Plan.Widest(), Type: part.Compute})
	if err != nil {
		return r, err
	}
	// A SIMD lane multiplies four bytes, on arm64 at most eight, in the time of one float32. A
	// higher peak belongs to a matrix unit of each core, which vector kernels do not use.
	const vector, limit = 4, 8
	if f32 := p.vectors(set); !part.Matrix && f32 > 0 && r.Targets[0].Peak > limit*f32 {
		scale := vector * f32 / r.Targets[0].Peak
		r.Targets[0].Peak *= scale
		for i := range r.Targets[0].Parts {
			r.Targets[0].Parts[i].Peak *= scale
		}
	}
	if p.Alone {
		r = r.Alone()
	}
	known[key] = r
	return r, nil
}

// vectors returns the float32 rate of the cores' vector units, in FLOP/s.
func (p *Placer) vectors(set topotree.CPUSet) float64 {
	return p.Machine.Peak(set, roofline.Path{ISA: p.Plan.Widest(), Type: "f32"}).Value
}

// like reports whether two placements differ only in their ops.
func (p *Placed) like(o *Placed) bool {
	return p.Compute == o.Compute && p.Type == o.Type && p.Regime == o.Regime && p.Target == o.Target &&
		p.Split == o.Split && p.Why == o.Why
}

// Join merges placements that differ only in their ops.
func Join(list []Placed) (out []Placed) {
	for _, p := range list {
		k := slices.IndexFunc(out, func(o Placed) bool {
			return o.Phase == p.Phase && o.From == p.From && o.To == p.To && o.like(&p)
		})
		if k < 0 {
			out = append(out, p)
			continue
		}
		if !slices.Contains(out[k].Ops, p.Ops[0]) {
			out[k].Ops = append(slices.Clip(out[k].Ops), p.Ops...)
		}
	}
	return out
}

// Ranges returns the placements of the ops of a phase for 1 to limit rows. A range ends where the
// regime or the target of an op changes.
func (p *Placer) Ranges(phase string, limit int) ([]Placed, error) {
	last, err := p.At(phase, 1)
	if err != nil {
		return nil, err
	}
	ranges := slices.Clone(last)
	for last[0].From < limit {
		next, err := p.At(phase, min(2*last[0].From, limit))
		if err != nil {
			return nil, err
		}
		for _, op := range last {
			changes, err := p.changes(op, next)
			if err != nil {
				return nil, err
			}
			ranges = append(ranges, changes...)
		}
		last = next
	}
	return Join(endRanges(ranges, limit)), nil
}

// changes returns the placements at which the regime or the target of an op changes between two
// numbers of rows. It finds them by bisection.
func (p *Placer) changes(op Placed, end []Placed) (out []Placed, err error) {
	last := op.in(end)
	for last != nil && op.moved(last) {
		low, high := op.From, *last // the op has moved at high, but not at low
		for high.From-low > 1 {
			list, err := p.At(op.Phase, (low+high.From)/2)
			if err != nil {
				return nil, err
			}
			if middle := op.in(list); middle != nil && op.moved(middle) {
				high = *middle
			} else {
				low = list[0].From
			}
		}
		out, op = append(out, high), high
	}
	return out, nil
}

// in returns the placement of the same part in another forward, nil if there is none.
func (p *Placed) in(list []Placed) *Placed {
	for i := range list {
		if list[i].part == p.part {
			return &list[i]
		}
	}
	return nil
}

// moved reports whether regime or target differ.
func (p *Placed) moved(o *Placed) bool { return p.Regime != o.Regime || p.Target != o.Target }

// endRanges sets the end of each range to the begin of the next one of the same part, and sorts the
// ranges.
func endRanges(ranges []Placed, limit int) []Placed {
	for i := range ranges {
		ranges[i].To = limit
		for _, next := range ranges[i+1:] {
			if next.part == ranges[i].part {
				ranges[i].To = next.From - 1
				break
			}
		}
	}
	slices.SortStableFunc(ranges, func(a, b Placed) int { return strings.Compare(a.key(), b.key()) })
	return ranges
}

// key returns the sort key: type, path, then rows.
func (p *Placed) key() string { return fmt.Sprintf("%s %s %06d", p.Type, p.Compute, p.From) }
