package model

import (
	"fmt"
	"math"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
)

// Rows is what a forward works on.
type Rows struct {
	Spans []Span // one for each sequence
	Heads int    // rows whose logits are wanted
}

// Span is n rows of a sequence that follow pos earlier ones.
type Span struct{ Pos, N int }

// Task is what ops of a forward do that have one arithmetic and one shape.
type Task struct {
	Compute string // as ceilings name it: f32, int8, bf16
	Type    string // of the weights; "" for attention, which has none
	// Attends says that it is attention, whose arithmetic may be another than Compute: the plan's
	Attends bool
	roofline.Step
}

// Work is what forwards of a model do under a plan, as its ops say it: the products of each weight
// in the arithmetic of its path, as often as rows reach its experts, and attention, which is
// float32 whatever the weights are, over the positions that each layer sees. Bytes are those that
// must come from memory, weights and cached keys and values; Moves has the activations, which lie
// in caches. What else norms and rotations do is little and is left out. Ops of one shape are one
// task.
type Work struct {
	prefill  *plans.Phase // whose schedules say how often weights are unpacked
	products []product
	attends  []attend
	states   state
	moves    []move
	between  float64 // bytes of weights that pass until activations are touched again
}

// product is matrices of one shape.
type product struct {
	compute     string
	key         plans.WeightKey
	flop, bytes float64 // of one matrix and one row; of reading one matrix
	count       float64
	used, of    int  // experts of a row, and among how many; 0 of 0: every row takes every matrix
	head        bool // only of rows whose logits are wanted
}

// attend is layers whose attention is alike.
type attend struct {
	heads, kvHeads, dim, window int
	both                        bool // directions
	layers                      float64
	kvBits                      float64 // of a cached value
}

// NewWork reads the ops of a model; Load, Config.Model and Outline give one, of which Outline, who
// knows a shape alone, leaves out what only a file's metadata say, such as windows. Types and paths
// are the plan's. The error is a plan for another model, which lacks a weight.
func NewWork(m *Model, p *plans.Plan) (*Work, error) {
	w := &Work{prefill: &p.Prefill, between: bytesBetween(m, p)}
	types := newTypesOf(p)
	for i := range m.Ops {
		op := &m.Ops[i]
		w.states.add(op)
		w.move(m, op)
		if op.Kind == OpAttention {
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

func (w *Work) product(m *Model, op *Op, weight *Weight, key plans.WeightKey, p *plans.Plan) {
	path := microkernel.ComputeF32
	if chosen, ok := p.Weight(key); ok {
		path = chosen.Compute
	}
	values := float64(weight.N) * float64(weight.K)
	one := product{compute: path.Ceiling(), key: key, flop: 2 * values, bytes: values * roofline.Bits(key.Type) / 8,
		head: op.Wanted}
	if op.Kind == OpExperts {
		one.used, one.of = m.Experts.Used, m.Experts.Count
	}
	w.products = counted(w.products, one, float64(weight.Matrices()), func(p *product) *float64 { return &p.count })
}

// counted adds n of one to a list whose elements are told apart by all but their count.
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

func (w *Work) attend(m *Model, op *Op, kv microkernel.KVType) {
	h := op.Heads
	position := plans.ModelShape{Layers: 1, KVHeads: h.KV, HeadDim: h.Dim}.KVBytesPerToken(kv)
	one := attend{heads: h.Q, kvHeads: h.KV, dim: h.Dim, window: op.Attn.Window, both: op.Attn.Both,
		kvBits: 8 * float64(position) / float64(2*h.KV*h.Dim)}
	w.attends = counted(w.attends, one, 1, func(a *attend) *float64 { return &a.layers })
}

// Of lists what a forward does.
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
		each, read := p.count, p.count // matrices that a row is multiplied by, and that are read
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
		out = append(out, Task{Compute: p.compute, Type: p.key.Type, Step: step})
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

// schedule is that of a weight for m rows of a prompt.
func (w *Work) schedule(key plans.WeightKey, m int) (plans.Schedule, bool) {
	if w.prefill == nil {
		return plans.Schedule{}, false
	}
	return w.prefill.Lookup(key, m)
}

// of is that of one sequence in all such layers.
func (a attend) of(span Span) roofline.Work {
	if a.both { // every row sees all of the text, or of its window
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

// typesOf gives the matrices of a model the types that the plan's shape lists for their role and
// size, each as often as it lists them.
type typesOf map[roleShape][]plans.WeightShape

type roleShape struct {
	role string
	n, k int
}

func newTypesOf(p *plans.Plan) typesOf {
	t := typesOf{}
	for _, w := range p.Model.Weights {
		at := roleShape{w.Role, w.N, w.K}
		t[at] = append(t[at], w)
	}
	return t
}

// next is the key of a weight's matrices, which are counted off.
func (t typesOf) next(w *Weight) (plans.WeightKey, error) {
	at := roleShape{w.Role, w.N, w.K}
	left := t[at]
	for len(left) > 0 && left[0].Count < w.Matrices() {
		left = left[1:]
	}
	if len(left) == 0 {
		return plans.WeightKey{}, fmt.Errorf("the plan's model has no more weights %s of %dx%d for %s: it is of "+
			"another model", w.Role, w.N, w.K, w.Name)
	}
	left[0].Count -= w.Matrices()
	t[at] = left
	return left[0].Key(), nil
}
