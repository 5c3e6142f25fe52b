package cost

import (
	"strings"

	"sandwich/plans"
	"sandwich/roofline"
	"sandwich/runtime/model"
)

// OpWork is the work of one op in a forward.
type OpWork struct {
	Op    string // name of the op without the layer
	Kind  model.Kind
	Count int      // number of ops in the model with the same work
	Parts []OpPart // one per path and weight type; at least one
}

// OpPart is the work of an op with one path and one type of weights.
type OpPart struct {
	Compute string // path, as ceilings name it
	Type    string // of the weights; "" without weights
	Matrix  bool   // the kernel uses a matrix unit of each core
	roofline.Step
	roofline.Output
}

// opWorks returns the distinct works of the ops of a forward in a phase, and for each op the index
// of its work. It fails if the plan is for another model.
func opWorks(m *model.Model, p *plans.Plan, phase *plans.Phase, rows Rows) (list []OpWork, at []int, err error) {
	types := newTypesOf(p)
	between := bytesBetween(m, p)
	all := 0
	for _, s := range rows.Spans {
		all += s.N
	}
	for i := range m.Ops {
		op := &m.Ops[i]
		w := workOfOp{m: m, op: op, plan: p, phase: phase, rows: rows, all: all, between: between}
		if op.Wanted || op.In == model.BufLogits {
			w.all = rows.Heads
		}
		if err := w.products(types); err != nil {
			return nil, nil, err
		}
		w.rest()
		one := OpWork{Op: opName(op), Kind: op.Kind, Parts: w.parts}
		k := 0
		for k < len(list) && !list[k].same(&one) {
			k++
		}
		if k == len(list) {
			list = append(list, one)
		}
		list[k].Count++
		at = append(at, k)
	}
	return list, at, nil
}

// opName returns the name of an op without the layer.
func opName(op *model.Op) string {
	if rest, layer := strings.CutPrefix(op.Name, "blk."); layer {
		_, name, _ := strings.Cut(rest, ".")
		return name
	}
	return op.Name
}

// same reports whether two works are equal.
func (o *OpWork) same(b *OpWork) bool {
	if o.Op != b.Op || len(o.Parts) != len(b.Parts) {
		return false
	}
	for i := range o.Parts {
		if o.Parts[i] != b.Parts[i] {
			return false
		}
	}
	return true
}

// workOfOp collects the parts of one op.
type workOfOp struct {
	m     *model.Model
	op    *model.Op
	plan  *plans.Plan
	phase *plans.Phase
	rows  Rows
	all   int // rows of the op
	parts []OpPart
	// bytes of weights that pass through the caches until the same activations are used again
	between float64
}

// bytesBetween returns half the bytes of the weights of an average layer, all experts included: the
// residual stream is used twice per layer, by its two norms.
func bytesBetween(m *model.Model, p *plans.Plan) (sum float64) {
	for _, w := range p.Model.Weights {
		if w.Role != plans.RoleEmbed && w.Role != "head" {
			sum += float64(w.Count) * float64(w.N) * float64(w.K) * roofline.Bits(w.Type) / 8
		}
	}
	return sum / 2 / float64(max(1, m.Dims.Layers))
}

// products adds a part per path and type for the matrices of the op.
func (w *workOfOp) products(types typesOf) error {
	for _, i := range w.op.W {
		weight := &w.m.Weights[i]
		key, err := types.next(weight)
		if err != nil {
			return err
		}
		if w.all == 0 {
			continue // no logits are wanted
		}
		var one Work
		one.product(w.m, w.op, weight, key, w.plan)
		each := float64(weight.Matrices())
		m := w.all // rows of one matrix
		var work roofline.Work
		for _, t := range one.Of(Rows{Spans: []Span{{N: w.all}}, Heads: w.all}) {
			work = work.Add(t.Work)
		}
		if w.op.Kind == model.OpExperts {
			each *= plans.Reached(w.m.Experts.Used, w.m.Experts.Count, w.all)
			m = int(max(1, float64(w.all*w.m.Experts.Used)/max(1, each)))
		}
		part := OpPart{Compute: one.products[0].compute, Type: key.Type, Step: roofline.Step{Work: work},
			Output: roofline.Output{Rows: m, Columns: key.N, TileRows: 1, TileColumns: 1}}
		tiles := 1.0
		if s, ok := w.phase.Lookup(key, m); ok {
			part.TileRows, part.TileColumns = s.Kernel.MR, s.Kernel.NR
			tiles = float64(s.Unpackings(m))
			part.Matrix = s.Kernel.MatrixUnit()
		}
		part.Unpacked = tiles * each * float64(key.N) * float64(key.K)
		w.add(part)
	}
	return nil
}

// add adds a part, or adds its work to the part with the same path and type.
func (w *workOfOp) add(part OpPart) {
	for i := range w.parts {
		if p := &w.parts[i]; p.Compute == part.Compute && p.Type == part.Type && p.Matrix == part.Matrix {
			p.Step = p.Step.Add(part.Step)
			p.Columns += part.Columns
			return
		}
	}
	w.parts = append(w.parts, part)
}

// rest adds the work of attention and recurrent states, and the activations of the op.
func (w *workOfOp) rest() {
	f32 := roofline.Step{}
	out := roofline.Output{}
	switch w.op.Kind {
	case model.OpAttention:
		var one Work
		one.attend(w.m, w.op, w.plan.KV)
		h := w.op.Heads
		for _, s := range w.rows.Spans {
			f32.Work = f32.Work.Add(one.attends[0].of(s))
		}
		f32.Between = f32.FLOP / float64(4*h.Dim) * roofline.SoftmaxFLOP
		out = roofline.Output{Rows: w.all, Columns: h.Q * h.Dim, TileRows: 1, TileColumns: h.Q / max(1, h.KV) * h.Dim}
	case model.OpConv, model.OpDelta:
		var s state
		s.add(w.op)
		f32.Work = roofline.Work{FLOP: float64(w.all) * s.flop, Bytes: float64(len(w.rows.Spans)) * s.bytes}
	}
	if len(w.parts) == 0 || f32.FLOP > 0 {
		w.add(OpPart{Compute: "f32", Step: f32, Output: out})
	}
	moved, touched := activations(w.m, w.op)
	w.parts[0].Moved = moved.of(w.all, w.rows.Heads)
	w.parts[0].Touched = touched.of(w.all, w.rows.Heads) + w.between
}
