package model

import (
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
)

// TestWork counts what one row and many do: every matrix in its own arithmetic, experts as far as
// rows reach them, attention in float32 over all that is cached.
func TestWork(t *testing.T) {
	up := plans.WeightShape{Role: "up", N: 768, K: 2048, Type: "q8_0", Count: 2 * 16}
	head := plans.WeightShape{Role: "head", N: 1000, K: 2048, Type: "f32", Count: 1}
	p := &plans.Plan{KV: microkernel.KVF16,
		Model: plans.ModelShape{Layers: 2, Heads: 32, KVHeads: 4, HeadDim: 128, Experts: 16, ExpertsUsed: 4,
			Weights: []plans.WeightShape{{Role: plans.RoleEmbed, N: 1000, K: 2048, Type: "f32", Count: 1}, up, head}},
		Weights: []plans.WeightPlan{{WeightKey: up.Key(), Compute: microkernel.ComputeInt8}},
	}
	const expert, kvToken = 768 * 2048, 2 * 2 * 4 * 128 * 2
	for name, c := range map[string]struct {
		rows Rows
		want []Task
	}{
		"one row": {Rows{Spans: []Span{{Pos: 9, N: 1}}, Heads: 1}, []Task{
			task("int8", 2*expert*2*4, expert*8.5/8*2*4),
			task("f32", 2*1000*2048, 4*1000*2048),
			task("f32", 2*4*10*32*128, 10*kvToken),
		}},
		"a chunk without logits": {Rows{Spans: []Span{{Pos: 100, N: 64}}}, []Task{
			task("int8", 64*2*expert*2*4, expert*8.5/8*2*16),
			task("f32", 2*4*(64*164-64*63/2)*32*128, 164*kvToken),
		}},
	} {
		got := Work(p, c.rows)
		if len(got) != len(c.want) {
			t.Fatalf("%s: %+v, want %+v", name, got, c.want)
		}
		for i, w := range c.want {
			g := got[i]
			if g.Compute != w.Compute || g.FLOP != w.FLOP || g.Bytes < w.Bytes*0.9999 || g.Bytes > w.Bytes*1.0001 {
				t.Errorf("%s: task %d is %+v, want %+v", name, i, g, w)
			}
		}
	}
}

func task(compute string, flop, bytes float64) Task {
	t := Task{Compute: compute}
	t.FLOP, t.Bytes = flop, bytes
	return t
}
