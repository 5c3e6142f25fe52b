package tuner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/tuner/measure"
)

// mostRowAnchor bounds how long the work of an op on a row is timed.
const mostRowAnchor = 50 * time.Millisecond

// rowKind are ops that do the same work on a row.
type rowKind struct {
	kind                            model.Kind
	heads                           model.Heads
	rope                            *model.Rope
	keeps, q, k, v, temper, shifted bool
}

func rowKindOf(op *model.Op) rowKind {
	k := rowKind{kind: op.Kind, shifted: op.Shift != nil}
	if op.Kind == model.OpRotate {
		k.heads, k.rope, k.keeps, k.temper = op.Heads, op.Rope, op.Keeper == op.Layer, op.Temper != nil
		k.q, k.k, k.v = op.QNorm != nil, op.KNorm != nil, op.VNorm != nil
	}
	if op.Kind == model.OpAddNorm {
		k.kind = model.OpNorm
	}
	return k
}

// rows measures how long one PU takes for a row of the ops that have neither weights nor a task,
// which no roof knows of: lookups are plain Go, norms chains of sums, rotations go to the cache in
// pieces.
func (c *calibration) rows(ctx context.Context, o SimulateOptions) error {
	if o.Model == nil {
		return nil
	}
	f, err := c.rowForm(o)
	if err != nil {
		return err
	}
	known := map[rowKind]float64{}
	out := make([]float64, len(o.Model.Ops))
	for i := range o.Model.Ops {
		op := &o.Model.Ops[i]
		w, ok := exec.RowWorkOf(o.Model, op, f)
		if !ok {
			continue
		}
		kind := rowKindOf(op)
		if _, done := known[kind]; !done {
			seconds, err := measure.TimeRows(ctx, w, min(c.least, mostRowAnchor))
			if err != nil {
				return err
			}
			known[kind] = seconds
			c.out.Measured = append(c.out.Measured, fmt.Sprintf("one PU takes %.2g us for a row of %s under %s",
				1e6*seconds, op.Name[strings.LastIndexByte(op.Name, '.')+1:], f.Vec.ISA()))
		}
		out[i] = known[kind]
	}
	c.out.Rows = out
	return nil
}

func (c *calibration) rowForm(o SimulateOptions) (f exec.RowForm, err error) {
	isa, err := microkernel.ParseISA(c.plan.Widest())
	if err != nil {
		return f, err
	}
	if f.Vec, err = microkernel.NewVec(isa); err != nil {
		return f, err
	}
	f.Layout = microkernel.KVLayout{Elem: c.plan.KV}.For(c.plan.Attention)
	for _, w := range o.Shape.Weights {
		if w.Role == plans.RoleEmbed {
			f.Table, err = gguf.ParseType(w.Type)
			return f, err
		}
	}
	if !o.Model.Tied {
		return f, errors.New("the model's shape has no embedding")
	}
	return f, nil
}
