package gemm

import (
	"unsafe"

	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
)

// MatMul computes the caller's part of op i: Outs[j] = In * W[j]^T + Bias[j] or, if it adds, X +=
// In * W[0]^T. The slices of all its weights form one list of chunks, so that small weights (k and
// v) fill the gaps of large ones.
func (r *Products) MatMul(g *tp.Group, i int, op *model.Op, m int, adds bool) {
	if r.throughput != nil && !g.W.Tolerant() { // an assignment would wait for a worker that is descheduled
		r.assigned(g, i, op, m, adds)
		return
	}
	total := 0
	for j := range op.Outs {
		p := r.product(g, op, j, m)
		if static(g, p.gemm) {
			p.addTo(g, adds)
			p.runStatic(g.Scratch.Work, g.ID)
			continue
		}
		total += p.grid.Tasks(m)
	}
	var p product // of the chunk at hand: successive chunks mostly belong to one product
	of := -1
	for lo, hi, ok := g.Next(total, 1); ok; lo, hi, ok = g.Next(total, 1) {
		for t := lo; t < hi; t++ {
			j, task := r.findTask(g, op, m, t)
			if j != of {
				p, of = r.product(g, op, j, m), j
				p.addTo(g, adds)
			}
			p.o.Prefetch = nil
			if likely := t + g.N; likely < total { // meanwhile each other worker takes one
				p.o.Prefetch = r.weightsOf(g, &p, j, op, m, likely)
			}
			p.run(g, p.grid.slice(m, task))
		}
	}
}

// weightsOf returns where the weights of a task begin. p is product j of the op.
func (r *Products) weightsOf(g *tp.Group, p *product, j int, op *model.Op, m, t int) unsafe.Pointer {
	i, task := r.findTask(g, op, m, t)
	if i == j {
		return p.grid.first(&p.o, task)
	}
	other := r.product(g, op, i, m)
	return other.grid.first(&other.o, task)
}

// static reports whether the slices of a product are assigned to the group's workers in advance. In
// preemption-tolerant mode they are not, since no other worker would compute those of a descheduled
// one.
func static(g *tp.Group, p *Gemm) bool { return p.static(g.N) && !g.W.Tolerant() }

// findTask returns the product of an op and its slice that a task number stands for. Products whose
// slices are assigned in advance are not counted.
func (r *Products) findTask(g *tp.Group, op *model.Op, m, t int) (i, task int) {
	if len(op.Outs) == 1 {
		return 0, t
	}
	for i := range op.Outs {
		grid := r.grid(op.W[i], m)
		if static(g, grid) {
			continue
		}
		n := grid.Tasks(m)
		if t < n {
			return i, t
		}
		t -= n
	}
	panic("gemm: task number beyond the op")
}

// Slices returns the number of slices of products of m rows by some weights.
func (r *Products) Slices(weights []int, m int) (total int) {
	if m == 0 {
		return 0
	}
	for _, wi := range weights {
		total += r.grid(wi, m).Tasks(m)
	}
	return total
}

// Expert computes slice t of the products of one expert, by its matrices of the op's stacks. The
// expert's m rows begin at row `first`.
func (r *Products) Expert(g *tp.Group, op *model.Op, expert, first, m, t int) {
	for i, wi := range op.W[:len(op.Outs)] {
		if n := r.grid(wi, m).Tasks(m); t >= n {
			t -= n
			continue
		}
		p := r.product(g, op, i, m)
		p.o.W = r.weights.InStack(wi, expert)
		p.o.A = unsafe.Pointer(g.Row(op.In, first))
		p.o.C = unsafe.Pointer(g.Row(op.Outs[i], first))
		p.o.Quantized.Base = p.o.Quantized.At(first, 0)
		p.o.Scale, p.o.Bias = r.scaleOf(wi, expert), biasOf(op, i, expert)
		if p.up != nil {
			p.upO.Scale, p.upO.Bias = r.scaleOf(op.W[1], expert), biasOf(op, 1, expert)
			p.upO.W, p.upO.A = r.weights.InStack(op.W[1], expert), p.o.A
			p.upO.Quantized.Base = p.upO.Quantized.At(first, 0)
		}
		p.run(g, p.grid.slice(m, t))
		return
	}
}

// Heads computes the caller's part of the products of single heads, by the matrices of a stack. The
// slices of all heads form one list of chunks.
func (r *Products) Heads(g *tp.Group, op *model.Op, rows int) {
	each := r.grid(op.W[0], rows).Tasks(rows)
	total := each * op.Heads.Q
	for lo, hi, ok := g.Next(total, 1); ok; lo, hi, ok = g.Next(total, 1) {
		for t := lo; t < hi; t++ {
			head := t / each
			p := r.product(g, op, 0, rows)
			p.o.W = r.weights.InStack(op.W[0], head)
			p.o.A = unsafe.Add(p.o.A, 4*head*op.InStep)
			p.o.C = unsafe.Add(p.o.C, 4*head*op.OutStep)
			p.o.Quantized.Base = p.o.Quantized.At(0, head*tp.QuantizedHead(p.o.W.Layout.K))
			p.run(g, p.grid.slice(p.o.M, t%each))
		}
	}
}
