package measure

import (
	"fmt"
	"maps"
	"slices"

	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/topotree"
)

// Predictions rest on four forwards of the model itself, two of each phase, which run in turn with
// those that are predicted (Agent.xpu appendix B has two anchors for an op). Products and attention
// take from them what they reach of the ceilings. What has neither weights nor multiplications has no
// ceiling to reach, and goes by a line through both forwards of its phase: lookups are plain Go, norms
// chains of sums, rotations go to the cache in pieces, and the first op waits for who sleeps.
//
// Anchors that were taken alone before the forwards were off where memory was faster then, and rows
// timed in the caches of one PU came out a quarter to a half too short (RATIONALE).
type anchors struct {
	types map[string]roofline.Near // of products, by weight type
	own   map[int]roofline.Near    // of what else multiplies, by op
	lines map[int][2]lines         // of what only moves rows, by op
	said  []string
}

// Rows of a prompt's anchors, at least and at most; those of a batch go by how many the plan lets
// in.
const (
	anchorFew  = 32
	anchorMany = 512
)

// anchorsOf are the rows of the anchors of a phase, the fewer first.
func (o *RooflineOptions) anchorsOf(phase string) [2]int {
	most := max(1, o.Placer.Plan.BatchMax)
	if phase == model.Phases[1] {
		few := min(2, most)
		return [2]int{few, max(few, most*3/4)}
	}
	few := max(anchorFew, 2*most)
	return [2]int{few, max(4*few, min(anchorMany, slices.Max(o.Rows)))}
}

// anchors are the rows of all of them.
func (o *RooflineOptions) anchors() (out []int) {
	for _, phase := range model.Phases {
		rows := o.anchorsOf(phase)
		out = append(out, rows[:]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Longest is the most rows of a forward that is run.
func (o *RooflineOptions) Longest() int { return max(slices.Max(o.Rows), slices.Max(o.anchors())) }

// lines are the time of an op by rows, through two measured ones.
type lines struct {
	m       [2]int
	seconds [2]float64
}

// at is the time of m rows, half of the nearer anchor's at least.
func (l *lines) at(m int) float64 {
	few, many := l.seconds[0], l.seconds[1]
	if l.m[0] == l.m[1] {
		return few
	}
	each := (many - few) / float64(l.m[1]-l.m[0])
	return max(few+each*float64(m-l.m[0]), min(few, many)/2)
}

// near is what an op reaches of its ceilings with weights of a type, "" for none.
func (a *anchors) near(op int, typ string, assumed roofline.Near) roofline.Near {
	if a == nil {
		return assumed
	}
	n, ok := a.types[typ]
	if typ == "" {
		n, ok = a.own[op]
	}
	if !ok {
		return assumed
	}
	return n
}

// moving is how long an op takes that only moves m rows; false of others.
func (a *anchors) moving(op int, phase string, m int) (seconds float64, known bool) {
	if a == nil {
		return 0, false
	}
	by, known := a.lines[op]
	l := by[slices.Index(model.Phases[:], phase)]
	return l.at(m), known
}

// anchored is a forward that others are predicted by: what its ops do, and how long they took.
type anchored struct {
	works []model.OpWork
	at    []int // by op, which of the works
	took  []float64
}

// op is the step of an op's works, all parts together, and its seconds.
func (f *anchored) op(op int) (a roofline.Anchor) {
	w := f.at[op]
	for _, part := range f.works[w].Parts {
		a.Step = a.Step.Add(part.Step)
	}
	a.Seconds = f.took[w]
	return a
}

// anchorsBy makes anchors of the forwards, by their rows.
func (o *RooflineOptions) anchorsBy(forwards map[int]*anchored) *anchors {
	a := &anchors{types: map[string]roofline.Near{}, own: map[int]roofline.Near{},
		lines: map[int][2]lines{}}
	prompt := forwards[o.anchorsOf(model.Phases[0])[1]]
	largest := map[string]int{} // op by type
	for op := range prompt.at {
		if slices.Index(prompt.at, prompt.at[op]) != op {
			continue // it does what one before does
		}
		switch typ, multiplies := kindOf(&prompt.works[prompt.at[op]]); {
		case !multiplies:
			a.lines[op] = o.linesOf(op, forwards)
		case typ == "":
			o.reach(a, op, typ, forwards)
		case typ != mixedTypes:
			if best, ok := largest[typ]; !ok || prompt.op(op).FLOP > prompt.op(best).FLOP {
				largest[typ] = op
			}
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(largest)) {
		o.reach(a, largest[typ], typ, forwards)
	}
	return a
}

// mixedTypes is the type of an op whose weights have several.
const mixedTypes = "several"

// kindOf is the type of an op's weights, "" for none, and whether it multiplies.
func kindOf(w *model.OpWork) (typ string, multiplies bool) {
	for i, part := range w.Parts {
		multiplies = multiplies || part.FLOP > 0
		if i > 0 && part.Type != typ {
			return mixedTypes, multiplies
		}
		typ = part.Type
	}
	return typ, multiplies
}

// linesOf are those of an op that only moves rows.
func (o *RooflineOptions) linesOf(op int, forwards map[int]*anchored) (out [2]lines) {
	for i, phase := range model.Phases {
		out[i].m = o.anchorsOf(phase)
		for k, m := range out[i].m {
			out[i].seconds[k] = forwards[m].op(op).Seconds
		}
	}
	return out
}

// reach finds what an op reaches of its ceilings. Products are bound by reading in the smallest batch;
// other ops read keys and values or states of each sequence, and the larger batch says most of it.
func (o *RooflineOptions) reach(a *anchors, op int, typ string, forwards map[int]*anchored) {
	batch, prompts := o.anchorsOf(model.Phases[1]), o.anchorsOf(model.Phases[0])
	memory := forwards[batch[0]].op(op)
	if typ == "" {
		memory = forwards[batch[1]].op(op)
	}
	few, compute := forwards[prompts[0]].op(op), forwards[prompts[1]].op(op)
	many := fmt.Sprintf("a prompt of %d", prompts[1])
	if most := forwards[batch[1]].op(op); most.Intensity() > compute.Intensity() { // of a head
		few, compute, many = roofline.Anchor{}, most, fmt.Sprintf("a batch of %d", batch[1])
	}
	work := &forwards[prompts[1]].works[forwards[prompts[1]].at[op]]
	arithmetic, set := work.Parts[0].Compute, o.pus(model.Phases[0])
	pace := o.pace(set, arithmetic)
	for _, anchor := range []*roofline.Anchor{&memory, &few, &compute} {
		around := o.Placer.Machine.Barrier(set).Value +
			pace.Seconds(roofline.Step{Moved: anchor.Moved, Touched: anchor.Touched}, o.Assumed)
		anchor.Seconds -= min(around, anchor.Seconds/2)
	}
	near, err := roofline.Reach(pace, memory, few, compute)
	if err != nil {
		return // its anchors are too much alike: what is assumed stays
	}
	what := work.Op + " reaches"
	if typ == "" {
		a.own[op] = near
	} else {
		a.types[typ], what = near, fmt.Sprintf("products of %s (%s) reach", typ, work.Op)
	}
	a.said = append(a.said, fmt.Sprintf("%s %.0f %% of what PUs %s read in a batch and %.0f %% of their %s peak in %s,"+
		" in turn with what is predicted", what, 100*near.Read, set, 100*near.Peak, arithmetic, many))
}

// sentences are what predictions rest on.
func (a *anchors) sentences(set topotree.CPUSet) []string {
	if len(a.lines) == 0 {
		return a.said
	}
	return append(slices.Clone(a.said), "norms, lookups and rotations take on PUs "+set.String()+
		" what a line through two forwards of their phase says")
}
