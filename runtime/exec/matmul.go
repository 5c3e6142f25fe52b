package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/model"
)

// matMul is Outs[i] = In * W[i]^T + Bias[i] or, where it adds, X += In * W[0]^T. The slices of all
// its weights form one list of tasks, so that small weights (k and v) fill the gaps of large ones.
func (e *Executor) matMul(g *group, i int, op *model.Op, adds bool) {
	m := e.inputRows(op)
	if e.pacer != nil && !g.w.Guarded() { // whose parts would be with nobody while their worker is lost
		e.divided(g, i, op, m, adds)
		return
	}
	total := 0
	scratch := e.scratch[g.w.Index()].gemm
	for i := range op.Outs {
		p := g.product(op, i, m)
		if g.static(p.gemm) {
			p.addTo(g, adds)
			p.runShare(scratch, g.id)
			continue
		}
		total += p.grid.Tasks(m)
	}
	var p product // of the slice at hand: neighbours are mostly of one
	of := -1
	for lo, hi, ok := g.next(total, 1); ok; lo, hi, ok = g.next(total, 1) {
		for t := lo; t < hi; t++ {
			i, task := g.findTask(op, m, t)
			if i != of {
				p, of = g.product(op, i, m), i
				p.addTo(g, adds)
			}
			p.o.Then = nil
			if likely := t + g.n; likely < total { // the others take one each meanwhile
				p.o.Then = g.begins(&p, i, op, m, likely)
			}
			e.compute(g, &p, p.grid.patch(m, task))
		}
	}
}

// begins is where the weights of a task begin; p is product i of the op.
func (g *group) begins(p *product, i int, op *model.Op, m, t int) unsafe.Pointer {
	j, task := g.findTask(op, m, t)
	if j == i {
		return p.grid.first(&p.o, task)
	}
	other := g.product(op, j, m)
	return other.grid.first(&other.o, task)
}

// static says whether a product's slices are laid on the group's workers beforehand: not while one
// of them may be lost, whose slices would be with nobody.
func (g *group) static(p *Gemm) bool { return p.static(g.n) && !g.w.Guarded() }

// addTo makes X what the product adds to, where it adds.
func (p *product) addTo(g *group, adds bool) {
	if p.sum = adds; adds {
		p.o.C, p.o.CStride = g.bufs.base[model.BufX], 4*g.bufs.stride[model.BufX]
	}
}

// findTask says which product of the op a task number belongs to, and which of its slices it is.
// Products whose slices are laid on the workers beforehand are not counted.
func (g *group) findTask(op *model.Op, m, t int) (i, task int) {
	if len(op.Outs) == 1 {
		return 0, t
	}
	for i := range op.Outs {
		gemm := g.rank.gemms[op.W[i]].of(m)
		if g.static(gemm) {
			continue
		}
		n := gemm.Tasks(m)
		if t < n {
			return i, t
		}
		t -= n
	}
	panic("exec: task number beyond the op")
}

// product is product i of an op; with an activation there is one of both weights.
func (g *group) product(op *model.Op, i, m int) product {
	w := g.rank.weights.At(op.W[i])
	p := product{gemm: g.gemms[op.W[i]].of(m), grid: g.rank.gemms[op.W[i]].of(m), o: Operands{
		M: m, W: w,
		A: g.bufs.base[op.In], AStride: 4 * g.bufs.stride[op.In],
		C: g.bufs.base[op.Outs[i]], CStride: 4 * g.bufs.stride[op.Outs[i]],
		Scale: g.scaleOf(op.W[i], 0), Bias: biasOf(op, i, 0), Rounded: g.bufs.rounded[w.Compute],
	}}
	p.gelu = op.Act == model.GELU
	if gated(op) {
		p.act = units[op.Act]
		p.up, p.upO = g.gemms[op.W[1]].of(m), p.o
		p.upO.W, p.upO.Scale, p.upO.Bias = g.rank.weights.At(op.W[1]), g.scaleOf(op.W[1], 0), biasOf(op, 1, 0)
		p.upO.Rounded = g.bufs.rounded[p.upO.W.Compute]
	}
	return p
}

// gated tells a product of a gate and an up projection from others.
func gated(op *model.Op) bool { return op.Act != model.NoActivation && op.Act != model.GELU }

// biasOf is the bias of weight i of an op, of one expert where it is a stack, and nil where it has
// none.
func biasOf(op *model.Op, i, expert int) unsafe.Pointer {
	if op.Bias == nil || op.Bias[i] == nil {
		return nil
	}
	return unsafe.Pointer(&op.Bias[i].Data[expert*op.Bias[i].N])
}

// scaleOf is what products of a weight are multiplied by, of one expert where it is a stack, and
// nil where that is nothing.
func (g *group) scaleOf(weight, expert int) *float32 {
	scale := g.shard.model.Weights[weight].Scale
	if scale == nil {
		return nil
	}
	return &scale.Data[expert]
}

// units are the gated units of the activations.
var units = [...]microkernel.GLU{model.SwiGLU: microkernel.SwiGLU, model.GeGLU: microkernel.GeGLU,
	model.ClampedSwiGLU: microkernel.ClampedSwiGLU, model.SigmoidGLU: microkernel.SigmoidGLU}
