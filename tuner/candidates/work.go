package candidates

import (
	"slices"

	"sandwich/plans"
	"sandwich/roofline"
	"sandwich/runtime/model/cost"
)

// shareKey identifies shares of the model with equal work.
type shareKey struct{ heads, kvHeads, ffn, vocab int }

// work is a rank's share of the model, with the tasks of the forwards requested so far.
type work struct {
	model *cost.Work
	err   error
	tasks map[forwardKey][]task
}

// task is the work of the ops of one arithmetic and one shape in a forward.
type task struct {
	typ    int    // index into Predictor.types
	weight string // type of the weights; "": none
	roofline.Step
}

// work returns the work of a share; equal shares have the same.
func (p *Predictor) work(s plans.Share, ranks int) *work {
	k := shareKey{s.Heads.Len(), s.KVHeads.Len(), s.FFN.Len(), s.Vocab.Len()}
	w, ok := p.works[k]
	if !ok {
		m := p.model
		if ranks > 1 {
			m = m.Share(s)
		}
		w = &work{tasks: map[forwardKey][]task{}}
		w.model, w.err = cost.NewWork(m, p.planOf(s, ranks))
		p.works[k] = w
	}
	return w
}

// planOf returns the plan of a model of the size of a share.
func (p *Predictor) planOf(s plans.Share, ranks int) *plans.Plan {
	if ranks == 1 {
		return p.plan
	}
	out := *p.plan
	shape := p.shape
	shape.Heads, shape.KVHeads = s.Heads.Len(), s.KVHeads.Len()
	if shape.Experts > 0 {
		shape.ExpertFFN = s.FFN.Len()
	} else {
		shape.FFN = s.FFN.Len()
	}
	shape.Weights, out.Weights = nil, nil
	for _, w := range p.shape.Weights {
		path, known := p.plan.Weight(w.Key())
		if w.Role != plans.RoleEmbed {
			rows, cols, _ := s.Matrix(w.Role, p.shape.HeadDim, w.N, w.K)
			w.N, w.K = rows.Len(), cols.Len()
		}
		shape.Weights = append(shape.Weights, w)
		if path.WeightKey = w.Key(); known {
			out.Weights = append(out.Weights, path)
		}
	}
	out.Model = shape
	return &out
}

// tasks returns the tasks of a forward.
func (p *Predictor) tasks(w *work, k forwardKey) []task {
	if out, ok := w.tasks[k]; ok {
		return out
	}
	rows := cost.Rows{Heads: k.heads}
	pos := k.context * contextBucket
	if k.phase == 0 {
		rows.Spans = []cost.Span{{Pos: pos, N: k.rows}}
	} else {
		for range k.rows {
			rows.Spans = append(rows.Spans, cost.Span{Pos: pos, N: 1})
		}
	}
	var out []task
	for _, t := range w.model.Of(rows) {
		typ := slices.Index(p.types, t.Compute)
		out = append(out, task{typ, t.Type, t.Step})
	}
	for _, step := range w.model.Moves(rows) {
		out = append(out, task{Step: step}) // of any arithmetic
	}
	w.tasks[k] = out
	return out
}
