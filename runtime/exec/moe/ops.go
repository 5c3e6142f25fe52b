package moe

import (
	"unsafe"

	"sandwich/internal/portable"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
)

// rowChunk is the number of rows that a worker takes at a time.
const rowChunk = 4

// Route chooses the experts of every row and computes their weights.
func (r *Routes) Route(g *tp.Group, op *model.Op, rows int) {
	experts := len(r.start) - 1
	for lo, hi, ok := g.Next(rows, rowChunk); ok; lo, hi, ok = g.Next(rows, rowChunk) {
		for row := lo; row < hi; row++ {
			logits := unsafe.Slice(g.Row(model.BufRouter, row), experts)
			r.weigh(g.Vec, row, logits, &op.Router)
		}
	}
	g.Barrier()
	for _, _, ok := g.Next(1, 1); ok; _, _, ok = g.Next(1, 1) {
		r.group(rows)
	}
}

// Dispatch copies the row of each pair to where the experts read it.
func (r *Routes) Dispatch(g *tp.Group, op *model.Op, rows int) {
	pairs, hidden := rows*r.used, g.Shard.Model.Dims.Hidden
	for lo, hi, ok := g.Next(pairs, rowChunk); ok; lo, hi, ok = g.Next(pairs, rowChunk) {
		for at := lo; at < hi; at++ {
			dst := unsafe.Slice(g.Row(model.BufExpert, at), hidden)
			copy(dst, unsafe.Slice(g.Row(model.BufH, int(r.source[at])), hidden))
			if op.Router.ScaleInput {
				if weight := r.weightAt(at); weight != 1 {
					for i := range dst {
						dst[i] *= weight
					}
				}
			}
		}
	}
}

// Experts computes a step of the products of all experts: Outs[i] = In * W[i]^T, where W[i] is a
// stack of one matrix per expert, which multiplies the rows of that expert. The slices of all
// products form one list of chunks, expert by expert.
func (r *Routes) Experts(g *tp.Group, p *gemm.Products, op *model.Op, step tp.Step) {
	slices := func(expert int) int {
		_, m := r.rowsOf(expert)
		return p.Slices(op.W[:len(op.Outs)], m)
	}
	total := 0
	for expert := range len(r.start) - 1 {
		total += slices(expert)
	}
	first, total := step.Share(total)
	expert, before := 0, 0 // chunks of the experts before; numbers ascend, except for a reclaimed chunk
	for lo, hi, ok := g.Next(total, 1); ok; lo, hi, ok = g.Next(total, 1) {
		for t := first + lo; t < first+hi; t++ {
			if t < before {
				expert, before = 0, 0
			}
			for n := slices(expert); t-before >= n; n = slices(expert) {
				before += n
				expert++
			}
			row, m := r.rowsOf(expert)
			p.Expert(g, op, expert, row, m, t-before)
		}
	}
}

// Combine sums the weighted outputs of each row's experts, best first: one chain of fused
// multiply-adds per element, from zero or from the content of Y. A unit is a segment of a row, so
// that workers share the one row of a decode step.
func (r *Routes) Combine(g *tp.Group, op *model.Op, rows int) {
	const segment = 1024
	hidden := g.Shard.Model.Dims.Hidden
	segments := (hidden + segment - 1) / segment
	for lo, hi, ok := g.Next(rows*segments, 1); ok; lo, hi, ok = g.Next(rows*segments, 1) {
		for u := lo; u < hi; u++ {
			row, c := u/segments, u%segments*segment
			n := min(segment, hidden-c)
			dst := raw.Add(g.Row(op.Outs[0], row), c)
			r.beginSum(g, op, row, dst, n)
			for pair := row * r.used; pair < (row+1)*r.used; pair++ {
				weight := r.weight[pair]
				if op.Router.ScaleInput {
					weight = 1
				}
				g.Vec.AddScaled(dst, raw.Add(g.Row(model.BufExpert, int(r.place[pair])), c), weight, n)
			}
		}
	}
}

// beginSum prepares n elements of a row of Y as the start of the sum. The first rank alone starts
// from the output of the shared expert.
func (r *Routes) beginSum(g *tp.Group, op *model.Op, row int, dst *float32, n int) {
	if !op.Accumulate || !g.Shard.First {
		clear(unsafe.Slice(dst, n))
		return
	}
	if op.Gate != nil {
		h := unsafe.Slice(g.Row(model.BufH, row), g.Shard.Model.Dims.Hidden)
		g.Vec.Scale(dst, float32(1/(1+portable.Exp(-dot(h, op.Gate.Data)))), n)
	}
}

// dot returns a dot product as float64 sums in one fixed order.
func dot(a, b []float32) float64 {
	var sum [4]float64
	for ; len(a) >= 4; a, b = a[4:], b[4:] {
		for i := range sum {
			sum[i] += float64(a[i]) * float64(b[i])
		}
	}
	for i := range a {
		sum[i] += float64(a[i]) * float64(b[i])
	}
	return sum[0] + sum[1] + (sum[2] + sum[3])
}
