package exec

import (
	"math"
	"unsafe"

	"sandwich/runtime/model"
)

// makeInputs is OpInputs: each layer's own input of a row is the mean of what the projection of the
// embedding gives, normalized, and of what the table has for the token, scaled.
func (e *Executor) makeInputs(g *group, op *model.Op) {
	all, n := op.Table.N, op.Norm.N
	own := (*float32)(e.scratch[g.w.Index()].gemm)
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			x := g.row(model.BufInputs, r)
			g.vec.Scale(x, op.Scale, all)
			g.vec.RMSNormRows(x, n, x, n, all/n, &op.Norm.Data[0], n, e.model.Eps)
			if err := e.inputs.row(unsafe.Slice(own, all), int(e.batch.Tokens[r])); err != nil {
				panic(err) // Load checked type and shape
			}
			g.vec.AddScaled(x, own, float32(math.Sqrt(float64(n))), all)
			g.vec.Scale(x, math.Sqrt2/2, all)
		}
	}
}

// gateInput is OpGate.
func (e *Executor) gateInput(g *group, op *model.Op) {
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			x := g.row(op.Outs[0], r)
			g.vec.GLU(units[op.Act], x, x, addElems(g.row(op.In, r), op.Layer*op.N), op.N)
		}
	}
}
