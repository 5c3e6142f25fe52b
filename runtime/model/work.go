package model

import (
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
	roofline.Work
}

// Work lists what a forward does under a plan: the products of each weight in the arithmetic of its
// path, and attention, which is float32 whatever the weights are, in all layers. Bytes are those
// that must come from memory, weights and cached keys and values: activations stay in caches. What
// else there is (norms, rotations) does little and is left out.
func Work(p *plans.Plan, rows Rows) []Task {
	s := p.Model
	all := 0
	for _, span := range rows.Spans {
		all += span.N
	}
	var out []Task
	for _, w := range s.Weights {
		m := all
		switch w.Role {
		case plans.RoleEmbed:
			continue
		case "head":
			m = rows.Heads
		}
		if m == 0 {
			continue
		}
		path := microkernel.ComputeF32
		if chosen, ok := p.Weight(w.Key()); ok {
			path = chosen.Compute
		}
		values := float64(w.N) * float64(w.K)
		out = append(out, Task{path.String(), roofline.Work{
			FLOP:  2 * float64(m) * values * s.PerRow(w),
			Bytes: values * roofline.Bits(w.Type) / 8 * s.Read(w, m),
		}})
	}
	for _, span := range rows.Spans {
		out = append(out, Task{microkernel.ComputeF32.String(), attention(p, span)})
	}
	return out
}

// attention is that of one sequence in all layers.
func attention(p *plans.Plan, span Span) roofline.Work {
	s := p.Model
	layers := float64(s.Layers)
	one := roofline.Attention(span.N, span.Pos+span.N, s.Heads, s.KVHeads, s.HeadDim, 0, true)
	return roofline.Work{FLOP: layers * one.FLOP, Bytes: float64(span.Pos+span.N) * float64(s.KVBytesPerToken(p.KV))}
}
