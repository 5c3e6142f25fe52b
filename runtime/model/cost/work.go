package cost

import (
	"fmt"
	"math"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
	"sandwich/runtime/model"
)

// Rows describes the rows of a forward.
type Rows struct {
	Spans []Span // one per sequence
	Heads int    // rows whose logits are wanted
}

// Span is N rows of a sequence after Pos earlier positions.
type Span struct{ Pos, N int }

// Task is the work of the ops of a forward with one path and one shape.
type Task struct {
	Compute string // path, as ceilings name it: f32, int8, bf16
	Type    string // of the weights; "" for attention
	Attends bool   // it is attention; the plan may give it another dot product than Compute
	Routed  bool   // products of experts
	roofline.Step
}

// Work estimates the work of forwards of a model under a plan: the products of each weight by its
// path, for the rows that reach its experts, and attention in float32 over the positions that each
// layer attends to. Bytes counts data from memory: weights and cached keys and values. Moves
// returns the activations, which are in caches. The arithmetic of norms and rotations is negligible
// and omitted. Ops of one shape are one Task.
type Work struct {
	prefill  *plans.Phase // its schedules determine how often weights are unpacked
	products []product
	attends  []attend
	states   state
	moves    []move
	between  float64 // bytesBetween
}

// product is the work of matrices of one shape.
type product struct {
	compute     string
	key         plans.WeightKey
	flop, bytes float64 // FLOP of one matrix and one row; bytes of one matrix
	count       float64 // number of matrices
	used, of    int     // experts per row, and experts; 0 and 0: all rows use all matrices
	head        bool    // only rows whose logits are wanted
}

// attend is the attention of layers with the same sizes.
type attend struct {
	heads, kvHeads, dim, window int
	bidirectional               bool
	layers                      float64
	kvBits                      float64 // of a cached value
}

// NewWork returns the work of a model's ops, with the types and paths of the plan. It fails if the
// plan is for another model.
func NewWork(m *model.Model, p *plans.Plan) (*Work, error) {
	w := &Work{prefill: &p.Prefill, between: bytesBetween(m, p)}
	types := newTypesOf(p)
	for i := range m.Ops {
		op := &m.Ops[i]
		w.states.add(op)
		w.move(m, op)
		if op.Kind == model.OpAttention {
			w.attend(m, op, p.KV)
		}
		for _, at := range op.W {
			key, err := types.next(&m.Weights[at])
			if err != nil {
				return nil, err
			}
			w.product(m, op, &m.Weights[at], key, p)
		}
	}
	return w, nil
}

// product adds the matrices of a weight.
func (w *Work) product(m *model.Model, op *model.Op, weight *model.Weight, key plans.WeightKey, p *plans.Plan) {
	path := microkernel.ComputeF32
	if chosen, ok := p.Weight(key); ok {
		path = chosen.Compute
	}
	values := float64(weight.N) * float64(weight.K)
	one := product{compute: path.Ceiling(), key: key, flop: 2 * values, bytes: values * roofline.Bits(key.Type) / 8,
		head: op.Wanted}
	if op.Kind == model.OpExperts {
		one.used, one.of = m.Experts.Used, m.Experts.Count
	}
	w.products = counted(w.products, one, float64(weight.Matrices()), func(p *product) *float64 { return &p.count })
}

// counted adds n to the count of an element that equals one but for its count, or appends one with
// the count n.
func counted[T comparable](list []T, one T, n float64, count func(*T) *float64) []T {
	for i := range list {
		same := list[i]
		if *count(&same) = 0; same == one {
			*count(&list[i]) += n
			return list
		}
	}
	*count(&one) = n
	return append(list, one)
}

// attend adds the attention of a layer.
func (w *Work) attend(m *model.Model, op *model.Op, kv microkernel.KVType) {
	h := op.Heads
	position := plans.ModelShape{Layers: 1, KVHeads: h.KV, HeadDim: h.Dim}.KVBytesPerToken(kv)
	one := attend{heads: h.Q, kvHeads: h.KV, dim: h.Dim, window: op.Attn.Window, bidirectional: op.Attn.Bidirectional,
		kvBits: 8 * float64(position) / float64(2*h.KV*h.Dim)}
	w.attends = counted(w.attends, one, 1, func(a *attend) *float64 { return &a.layers })
}

// Of returns the tasks of a forward.
func (w *Work) Of(rows Rows) []Task {
	all := 0
	for _, span := range rows.Spans {
		all += span.N
	}
	out := make([]Task, 0, len(w.products)+len(w.attends)*len(rows.Spans))
	for _, p := range w.products {
		m := all
		if p.head {
			m = rows.Heads
		}
		if m == 0 {
			continue
		}
		each, read := p.count, p.count // matrices that multiply a row, and matrices that are read
		if p.of > 0 {
			each = p.count * float64(p.used) / float64(p.of)
			read = p.count * plans.Reached(p.used, p.of, m)
		}
		step := roofline.Step{Work: roofline.Work{FLOP: float64(m) * p.flop * each, Bytes: p.bytes * read}}
		if s, ok := w.schedule(p.key, m); ok {
			rows := m
			if p.of > 0 {
				rows = int(math.Ceil(float64(m) * each / read)) // of one expert
			}
			step.Unpacked = read * p.flop / 2 * float64(s.Unpackings(rows))
		}
		out = append(out, Task{Compute: p.compute, Type: p.key.Type, Routed: p.of > 0, Step: step})
	}
	for _, span := range rows.Spans {
		if w.states.bytes > 0 {
			out = append(out, Task{Compute: microkernel.ComputeF32.String(),
				Step: roofline.Step{Work: roofline.Work{FLOP: float64(span.N) * w.states.flop, Bytes: w.states.bytes}}})
		}
		for _, a := range w.attends {
			out = append(out, Task{Compute: microkernel.ComputeF32.String(), Attends: true,
				Step: roofline.Step{Work: a.of(span)}})
		}
	}
	return out
}

// schedule returns the prefill schedule of a weight for m rows.
func (w *Work) schedule(key plans.WeightKey, m int) (plans.Schedule, bool) {
	if w.prefill == nil {
		return plans.Schedule{}, false
	}
	return w.prefill.Lookup(key, m)
}

// of returns the work of one sequence in all these layers.
func (a attend) of(span Span) roofline.Work {
	if a.bidirectional { // each row attends to the whole text, or to its window
		n := span.Pos + span.N
		if a.window > 0 {
			n = min(n, a.window+1)
		}
		one := roofline.Attention(1, n, 0, a.heads, a.kvHeads, a.dim, a.kvBits)
		return roofline.Work{FLOP: a.layers * one.FLOP * float64(span.N), Bytes: a.layers * one.Bytes}
	}
	one := roofline.Attention(span.N, span.Pos+span.N, a.window, a.heads, a.kvHeads, a.dim, a.kvBits)
	return roofline.Work{FLOP: a.layers * one.FLOP, Bytes: a.layers * one.Bytes}
}

// typesOf assigns the types of a plan's shape to the matrices of a model: by role and size, each
// type as often as the shape lists it.
type typesOf map[roleShape][]plans.WeightShape

type roleShape struct {
	role string
	n, k int
}

// Keys returns the key of each weight of a model by its index, with the types of the plan. It fails
// if the plan is for another model.
func Keys(m *model.Model, p *plans.Plan) ([]plans.WeightKey, error) {
	types, keys := newTypesOf(p), make([]plans.WeightKey, len(m.Weights))
	for i := range m.Ops {
		for _, at := range m.Ops[i].W {
			var err error
			if keys[at], err = types.next(&m.Weights[at]); err != nil {
				return nil, err
			}
		}
	}
	return keys, nil
}

// newTypesOf returns the assignment for a plan.
func newTypesOf(p *plans.Plan) typesOf {
	t := typesOf{}
	for _, w := range p.Model.Weights {
		at := roleShape{w.Role, w.N, w.K}
		t[at] = append(t[at], w)
	}
	return t
}

// next returns the key of a weight's matrices and removes them from the list.
func (t typesOf) next(w *model.Weight) (plans.WeightKey, error) {
	at := roleShape{w.Role, w.N, w.K}
	left := t[at]
	for len(left) > 0 && left[0].Count < w.Matrices() {
		left = left[1:]
	}
	if len(left) == 0 {
		return plans.WeightKey{}, fmt.Errorf("the plan has no weight %s of %dx%d for %s: it is for another model",
			w.Role, w.N, w.K, w.Name)
	}
	left[0].Count -= w.Matrices()
	t[at] = left
	return left[0].Key(), nil
}
