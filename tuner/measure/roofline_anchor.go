package measure

import (
	"fmt"
	"maps"
	"slices"

	"sandwich/roofline"
	"sandwich/runtime/model/cost"
	"sandwich/topotree"
)

// anchors are four forwards of the model, two of each phase, on which predictions are based. They
// run interleaved with the predicted forwards (Agent.xpu appendix B has two anchors per op). For
// products and attention they give the fraction of the ceilings that is reached. Ops without
// weights or multiplications have no ceiling; they are predicted by a line through both forwards of
// their phase.
//
// Anchors measured separately, before the forwards, gave worse predictions, because memory
// bandwidth changes over time.
type anchors struct {
	types map[string]roofline.Efficiency // of products, by weight type
	own   map[int]roofline.Efficiency    // of other ops that multiply, by op
	lines map[int][2]lines               // of ops that only move rows, by op
	said  []string
}

// Bounds of the rows of a prompt's anchors. Those of a batch depend on the plan's maximum.
const (
	anchorFew  = 32
	anchorMany = 512
)

// anchorsOf returns the rows of the anchors of a phase, ascending.
func (o *RooflineOptions) anchorsOf(phase string) [2]int {
	limit := max(1, o.Placer.Plan.BatchMax)
	if phase == cost.Phases[1] {
		few := min(2, limit)
		return [2]int{few, max(few, limit*3/4)}
	}
	few := max(anchorFew, 2*limit)
	return [2]int{few, max(4*few, min(anchorMany, slices.Max(o.Rows)))}
}

// anchors returns the rows of all anchors.
func (o *RooflineOptions) anchors() (out []int) {
	for _, phase := range cost.Phases {
		rows := o.anchorsOf(phase)
		out = append(out, rows[:]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Longest returns the maximum number of rows of a forward.
func (o *RooflineOptions) Longest() int { return max(slices.Max(o.Rows), slices.Max(o.anchors())) }

// lines is the time of an op by rows, through two measured points.
type lines struct {
	m       [2]int
	seconds [2]float64
}

// at returns the time of m rows, at least half of the nearer anchor's.
func (l *lines) at(m int) float64 {
	few, many := l.seconds[0], l.seconds[1]
	if l.m[0] == l.m[1] {
		return few
	}
	each := (many - few) / float64(l.m[1]-l.m[0])
	return max(few+each*float64(m-l.m[0]), min(few, many)/2)
}

// near returns the fraction of its ceilings that an op with weights of a type reaches; the type is
// "" without weights.
func (a *anchors) near(op int, typ string, assumed roofline.Efficiency) roofline.Efficiency {
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

// moving returns the seconds of an op that only moves m rows, or false for other ops.
func (a *anchors) moving(op int, phase string, m int) (seconds float64, known bool) {
	if a == nil {
		return 0, false
	}
	by, known := a.lines[op]
	l := by[slices.Index(cost.Phases[:], phase)]
	return l.at(m), known
}

// anchored is a measured forward on which predictions are based: the work of its ops, and their
// durations.
type anchored struct {
	works []cost.OpWork
	at    []int // index of the work of each op
	took  []float64
}

// op returns the step of an op's work, all parts together, and its seconds.
func (f *anchored) op(op int) (a roofline.Anchor) {
	w := f.at[op]
	for _, part := range f.works[w].Parts {
		a.Step = a.Step.Add(part.Step)
	}
	a.Seconds = f.took[w]
	return a
}

// anchorsBy returns the anchors from measured forwards, by their rows.
func (o *RooflineOptions) anchorsBy(forwards map[int]*anchored) *anchors {
	a := &anchors{types: map[string]roofline.Efficiency{}, own: map[int]roofline.Efficiency{},
		lines: map[int][2]lines{}}
	prompt := forwards[o.anchorsOf(cost.Phases[0])[1]]
	largest := map[string]int{} // op by type
	for op := range prompt.at {
		if slices.Index(prompt.at, prompt.at[op]) != op {
			continue // equal to an earlier op
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

// kindOf returns the type of an op's weights, "" for none, and whether it multiplies.
func kindOf(w *cost.OpWork) (typ string, multiplies bool) {
	for i, part := range w.Parts {
		multiplies = multiplies || part.FLOP > 0
		if i > 0 && part.Type != typ {
			return mixedTypes, multiplies
		}
		typ = part.Type
	}
	return typ, multiplies
}

// linesOf returns the lines of an op that only moves rows.
func (o *RooflineOptions) linesOf(op int, forwards map[int]*anchored) (out [2]lines) {
	for i, phase := range cost.Phases {
		out[i].m = o.anchorsOf(phase)
		for k, m := range out[i].m {
			out[i].seconds[k] = forwards[m].op(op).Seconds
		}
	}
	return out
}

// reach determines the fraction of its ceilings that an op reaches. Products are bound by reading
// in the smallest batch. Other ops read keys and values or states of each sequence, so that the
// larger batch is more accurate.
func (o *RooflineOptions) reach(a *anchors, op int, typ string, forwards map[int]*anchored) {
	batch, prompts := o.anchorsOf(cost.Phases[1]), o.anchorsOf(cost.Phases[0])
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
	arithmetic, set := work.Parts[0].Compute, o.pus(cost.Phases[0])
	pace := o.pace(set, arithmetic)
	for _, anchor := range []*roofline.Anchor{&memory, &few, &compute} {
		around := o.Placer.Machine.Barrier(set).Value +
			pace.Seconds(roofline.Step{Moved: anchor.Moved, Touched: anchor.Touched}, o.Assumed)
		anchor.Seconds -= min(around, anchor.Seconds/2)
	}
	near, err := roofline.FitEfficiency(pace, memory, few, compute)
	if err != nil {
		return // its anchors are too similar: keep the assumed figures
	}
	what := work.Op + " reaches"
	if typ == "" {
		a.own[op] = near
	} else {
		a.types[typ], what = near, fmt.Sprintf("products of %s (%s) reach", typ, work.Op)
	}
	a.said = append(a.said, fmt.Sprintf("%s %.0f %% of what PUs %s read in a batch and %.0f %% of their %s peak in %s,"+
		" interleaved with the predicted forwards", what, 100*near.Read, set, 100*near.Peak, arithmetic, many))
}

// sentences returns the basis of the predictions.
func (a *anchors) sentences(set topotree.CPUSet) []string {
	if len(a.lines) == 0 {
		return a.said
	}
	return append(slices.Clone(a.said), "norms, lookups and rotations take on PUs "+set.String()+
		" what a line through two forwards of their phase says")
}
