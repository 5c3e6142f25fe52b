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

// rowAnchor is how long the work of an op on a row is timed.
const rowAnchor = 50 * time.Millisecond

// RowAnchors are what norms, rotations and lookups take, which no roof knows of: lookups are plain
// Go, norms chains of sums, rotations go to the cache in pieces. `sandwich bench roofline` asks for
// them; rankings do not.
type RowAnchors struct {
	Seconds  []float64 // by op of the model, of one PU for a row of it; 0: not measured
	Measured []string  // sentences
}

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

// AnchorRows measures the ops of a model that have neither weights nor a task, by the kernels of
// its default plan.
func AnchorRows(ctx context.Context, o SimulateOptions) (*RowAnchors, error) {
	plan, _, _, err := o.untuned()
	if err != nil {
		return nil, err
	}
	f, err := rowForm(o, plan)
	if err != nil {
		return nil, err
	}
	known := map[rowKind]float64{}
	out := &RowAnchors{Seconds: make([]float64, len(o.Model.Ops))}
	for i := range o.Model.Ops {
		op := &o.Model.Ops[i]
		w, ok := exec.RowWorkOf(o.Model, op, f)
		if !ok {
			continue
		}
		kind := rowKindOf(op)
		if _, done := known[kind]; !done {
			seconds, err := measure.TimeRows(ctx, w, rowAnchor)
			if err != nil {
				return nil, err
			}
			known[kind] = seconds
			out.Measured = append(out.Measured, fmt.Sprintf("one PU takes %.2g us for a row of %s under %s",
				1e6*seconds, op.Name[strings.LastIndexByte(op.Name, '.')+1:], f.Vec.ISA()))
		}
		out.Seconds[i] = known[kind]
	}
	return out, nil
}

// rowForm is by what rows are worked on under a plan.
func rowForm(o SimulateOptions, plan *plans.Plan) (f exec.RowForm, err error) {
	isa, err := microkernel.ParseISA(plan.Widest())
	if err != nil {
		return f, err
	}
	if f.Vec, err = microkernel.NewVec(isa); err != nil {
		return f, err
	}
	f.Layout = microkernel.KVLayout{Elem: plan.KV}.For(plan.Attention)
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
