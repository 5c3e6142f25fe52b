package cost

import (
	"sandwich/roofline"
	"sandwich/runtime/model"
)

// perRow is a number of bytes per row of a forward, and per row whose logits are wanted.
type perRow struct{ row, head float64 }

func (p perRow) of(rows, heads int) float64 { return p.row*float64(rows) + p.head*float64(heads) }

func (p perRow) add(o perRow) perRow { return perRow{p.row + o.row, p.head + o.head} }

// activations returns the bytes of activations that an op reads and writes, and the bytes of the
// buffers that hold them.
func activations(m *model.Model, op *model.Op) (moved, touched perRow) {
	of := func(bufs ...model.Buf) (sum perRow) {
		for _, b := range bufs {
			if b == model.BufLogits {
				sum.head += 4 * float64(m.Width(b))
			} else {
				sum.row += 4 * float64(m.RowsOf(b, 1)*m.Width(b))
			}
		}
		return sum
	}
	switch op.Kind {
	case model.OpEmbed:
		touched = of(model.BufX)
		return touched, touched
	case model.OpNorm:
		touched = of(model.BufX, model.BufH)
		return touched, touched
	case model.OpAddNorm:
		touched = of(model.BufX, model.BufY, model.BufH)
		return touched.add(of(model.BufX)), touched // X is read and written
	case model.OpRotate:
		touched = of(model.BufQ, model.BufK, model.BufV)
		return touched.add(touched), touched // keys and values go to the cache
	case model.OpAttention:
		touched = of(model.BufQ, model.BufAtt)
		return touched, touched
	case model.OpGather:
		touched = perRow{head: 8 * float64(m.Dims.Hidden)}
		return touched, touched
	}
	touched = of(append([]model.Buf{op.In}, op.Outs...)...)
	return touched, touched
}

// move is the activations of some ops that read and write the same number of bytes.
type move struct {
	moved, touched perRow
	wanted         bool    // only rows whose logits are wanted
	ops            float64 // number of ops
}

// move adds the activations of an op that is neither a product nor attention; the measured rates of
// those include their activations.
func (w *Work) move(m *model.Model, op *model.Op) {
	if len(op.W) > 0 || op.Kind == model.OpAttention {
		return
	}
	one := move{wanted: op.Wanted || op.In == model.BufLogits}
	one.moved, one.touched = activations(m, op)
	w.moves = counted(w.moves, one, 1, func(m *move) *float64 { return &m.ops })
}

// Moves lists the activations that the ops without a Task read and write in a forward, one step per
// kind. Touched is the number of bytes that a cache must hold to keep them: the buffers and the
// weights that are read meanwhile.
func (w *Work) Moves(rows Rows) (out []roofline.Step) {
	all := 0
	for _, span := range rows.Spans {
		all += span.N
	}
	for _, x := range w.moves {
		n := all
		if x.wanted {
			n = rows.Heads
		}
		if moved := x.moved.of(n, rows.Heads); moved > 0 {
			out = append(out, roofline.Step{Moved: x.ops * moved, Touched: x.touched.of(n, rows.Heads) + w.between})
		}
	}
	return out
}
