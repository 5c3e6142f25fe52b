package offload

import (
	"fmt"
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device/rates"
	"sandwich/runtime/model"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/phase"
	"sandwich/runtime/placement"
)

// Forecast predicts forwards of a model on a device from measured rates, without opening the
// device.
type Forecast struct {
	rates    *devrates.Device
	model    *model.Model
	chunk    int             // of the plan
	products []rates.Product // by weight
}

// Products lists the products of a model under a plan, whose rates a Forecast needs.
func Products(m *model.Model, p *plans.Plan) (list []rates.Product, err error) {
	byWeight, err := productsOf(m, p)
	if err != nil {
		return nil, err
	}
	for i := range m.Ops {
		for _, w := range m.Ops[i].W {
			if one := byWeight[w]; !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	return list, nil
}

// productsOf returns the class of each weight's products. Weights without a path use float32.
func productsOf(m *model.Model, p *plans.Plan) ([]rates.Product, error) {
	keys, err := cost.Keys(m, p)
	if err != nil {
		return nil, err
	}
	list := make([]rates.Product, len(keys))
	for i, k := range keys {
		list[i].Path = microkernel.ComputeF32
		if w, ok := p.Weight(k); ok {
			list[i].Path = w.Compute
		}
		if k.Type == "" {
			continue // no op multiplies by it
		}
		if list[i].Type, err = microkernel.ParseWeightType(k.Type); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// NewForecast returns the forecast of a model under a plan. The error names a class of kernels that
// was not measured.
func NewForecast(r *devrates.Device, m *model.Model, p *plans.Plan) (*Forecast, error) {
	products, err := productsOf(m, p)
	if err != nil {
		return nil, err
	}
	needed := []string{rates.Attention, rates.Rows}
	for i := range m.Ops {
		for _, w := range m.Ops[i].W {
			needed = append(needed, products[w].Class())
		}
	}
	for _, name := range needed {
		if r.Class(name) == nil {
			return nil, fmt.Errorf("device %s has no measured rate of class %q", r.ID, name)
		}
	}
	return &Forecast{r, m, p.Chunk, products}, nil
}

// Forward returns the predicted time of a forward of rows of one sequence after pos positions, or
// of as many sequences of one row each. heads is the number of rows whose logits are wanted. Copies
// of keys and values are not part of it.
func (f *Forecast) Forward(of phase.Phase, rows, pos, heads int) time.Duration {
	seconds, segments := 0.0, 1+len(f.model.Ops)/unboundedOps
	for i := range f.model.Ops {
		seconds += f.op(&f.model.Ops[i], of, rows, pos, heads)
	}
	r := f.rates
	inputs, outputs := 4*float64(rows*f.model.Dims.Hidden), 4*float64(heads*f.model.Outputs)
	seconds += float64(segments)*r.LaunchSeconds + inputs/r.WriteBytesPerSecond + outputs/r.CopyBackBytesPerSecond
	return time.Duration(seconds * float64(time.Second))
}

// op returns the predicted seconds of an op.
func (f *Forecast) op(op *model.Op, of phase.Phase, n, pos, heads int) float64 {
	d := &f.model.Dims
	rowsOf := func(n, width int) float64 {
		flop, bytes := rates.RowsWork(n, width)
		return f.rates.Class(rates.Rows).Seconds(flop, bytes)
	}
	switch op.Kind {
	case model.OpNorm, model.OpGather:
		return rowsOf(n, d.Hidden)
	case model.OpAddNorm:
		return 2 * rowsOf(n, d.Hidden)
	case model.OpRotate:
		return rowsOf(n, (op.Heads.Q+2*op.Heads.KV)*op.Heads.Dim)
	case model.OpAttention:
		return f.attention(op, of, n, pos)
	case model.OpMatMul:
		if op.Wanted {
			n = heads
		}
		return f.multiply(op, n, rowsOf)
	}
	return 0
}

// multiply returns the predicted seconds of the products of an op and of the quantization of their
// input.
func (f *Forecast) multiply(op *model.Op, n int, rowsOf func(n, width int) float64) (sum float64) {
	if n == 0 {
		return 0
	}
	quantized := microkernel.ComputeF32
	for _, i := range op.W {
		w := &f.model.Weights[i]
		one := f.products[i]
		if one.Path != microkernel.ComputeF32 && one.Path != quantized {
			quantized = one.Path
			sum += rowsOf(n, w.K)
		}
		flop, bytes := rates.ProductWork(one, n, w.N, w.K)
		sum += f.rates.Class(one.Class()).Seconds(flop, bytes)
	}
	return sum
}

// attention returns the predicted seconds of an op of attention.
func (f *Forecast) attention(op *model.Op, of phase.Phase, n, pos int) float64 {
	seen := func(p int) int {
		if w := op.Attn.Window; w > 0 {
			return min(p, w)
		}
		return p
	}
	h, class := op.Heads, f.rates.Class(rates.Attention)
	if of == phase.Decode { // each row reads the keys and values of another sequence
		flop, bytes := rates.AttentionWork(1, seen(pos+1), h.Q, h.KV, h.Dim)
		return class.Seconds(float64(n)*flop, float64(n)*bytes)
	}
	flop, bytes := rates.AttentionWork(n, seen(pos+(n+1)/2), h.Q, h.KV, h.Dim)
	return class.Seconds(flop, bytes)
}

// Anchors of Side: rows of the two forwards of a phase through which a line is drawn.
const (
	batchRows = 8
	middle    = 256 // positions before the rows
)

// Side returns lines of the time of both phases, for chunks of the plan.
func (f *Forecast) Side() (s placement.Side) {
	chunk := max(2, f.chunk)
	s[phase.Prefill] = placement.Through(chunk/2, f.Forward(phase.Prefill, chunk/2, middle, 0),
		chunk, f.Forward(phase.Prefill, chunk, middle, 0))
	s[phase.Decode] = placement.Through(1, f.Forward(phase.Decode, 1, middle, 1),
		batchRows, f.Forward(phase.Decode, batchRows, middle, batchRows))
	return s
}

// Copies returns the predicted time to copy the keys and values of a position to the cores and to
// the device, in nanoseconds.
func (f *Forecast) Copies() (toCores, toDevice float64) {
	bytes := 0.0
	for i := range f.model.Ops {
		if op := &f.model.Ops[i]; op.Kind == model.OpRotate {
			bytes += 4 * float64(op.Heads.KV*op.Heads.Dim) // keys and values of float16
		}
	}
	return 1e9 * bytes / f.rates.CopyBackBytesPerSecond, 1e9 * bytes / f.rates.WriteBytesPerSecond
}
