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
	"sandwich/runtime/offload/handover"
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
	onCores  handover.Parts  // the experts, if there are any
}

// Products lists the products of a model on a device under a plan, whose rates a Forecast needs.
// Those of experts are computed by the cores.
func Products(m *model.Model, p *plans.Plan) (list []rates.Product, err error) {
	byWeight, err := productsOf(m, p)
	if err != nil {
		return nil, err
	}
	onCores := handover.Experts(m)
	for i := range m.Ops {
		for _, w := range m.Ops[i].W {
			if one := byWeight[w]; !onCores.Has(i) && !slices.Contains(list, one) {
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
	needed, onCores := []string{rates.Attention, rates.Rows}, handover.Experts(m)
	for i := range m.Ops {
		for _, w := range m.Ops[i].W {
			if !onCores.Has(i) {
				needed = append(needed, products[w].Class())
			}
		}
	}
	for _, name := range needed {
		if r.Class(name) == nil {
			return nil, fmt.Errorf("device %s has no measured rate of class %q", r.ID, name)
		}
	}
	return &Forecast{r, m, p.Chunk, products, onCores}, nil
}

// Forward returns the predicted time of a forward of rows of one sequence after pos positions, or
// of as many sequences of one row each. heads is the number of rows whose logits are wanted. Copies
// of keys and values are not part of it, nor is the time of experts on the cores.
func (f *Forecast) Forward(of phase.Phase, rows, pos, heads int) time.Duration {
	seconds := f.Launches()
	for i := range f.model.Ops {
		seconds += f.Op(i, of, rows, pos, heads).Seconds // 0 of experts
	}
	send, receive := f.CopySeconds()
	seconds += 4 * (float64(rows*f.model.Dims.Hidden)*send + float64(heads*f.model.Outputs)*receive)
	for i := range f.onCores {
		for _, buf := range f.onCores[i].In {
			seconds += 4 * float64(rows*f.model.Width(buf)) * receive
		}
		for _, buf := range f.onCores[i].Out {
			seconds += 4 * float64(rows*f.model.Width(buf)) * send
		}
	}
	return time.Duration(seconds * float64(time.Second))
}

// Launches returns the predicted seconds that the submissions of a forward take in addition to
// their kernels.
func (f *Forecast) Launches() float64 {
	return float64(1+len(f.onCores)+len(f.model.Ops)/unboundedOps) * f.rates.LaunchSeconds
}

// CopySeconds returns the predicted seconds per byte of copies to and from the device.
func (f *Forecast) CopySeconds() (send, receive float64) {
	return 1 / f.rates.WriteBytesPerSecond, 1 / f.rates.CopyBackBytesPerSecond
}

// OpForecast is the predicted time of an op and the bytes that it reads and writes.
type OpForecast struct{ Seconds, Bytes float64 }

func (o *OpForecast) add(c *devrates.Class, flop, bytes float64) {
	o.Seconds += c.Seconds(flop, bytes)
	o.Bytes += bytes
}

// addRows adds a kernel that reads and writes n rows.
func (o *OpForecast) addRows(r *devrates.Device, n, width int) {
	flop, bytes := rates.RowsWork(n, width)
	o.add(r.Class(rates.Rows), flop, bytes)
}

// Op returns the forecast of an op of a forward; see Forward.
func (f *Forecast) Op(index int, of phase.Phase, n, pos, heads int) (o OpForecast) {
	d, op := &f.model.Dims, &f.model.Ops[index]
	switch op.Kind {
	case model.OpNorm, model.OpGather:
		o.addRows(f.rates, n, d.Hidden)
	case model.OpAddNorm:
		if op.Post != nil {
			o.addRows(f.rates, n, d.Hidden)
		}
		o.addRows(f.rates, n, d.Hidden)
	case model.OpRotate:
		o.addRows(f.rates, n, (op.Heads.Q+2*op.Heads.KV)*op.Heads.Dim)
	case model.OpAttention:
		f.attention(&o, op, of, n, pos)
	case model.OpMatMul:
		if op.Wanted {
			n = heads
		}
		f.multiply(&o, index, n)
	}
	return o
}

// multiply adds the products of an op and the quantization of their input.
func (f *Forecast) multiply(o *OpForecast, index, n int) {
	if n == 0 {
		return
	}
	quantized := quantizedBefore(f.model, f.onCores, index, func(weight int) microkernel.Compute {
		return f.products[weight].Path
	})
	for _, i := range f.model.Ops[index].W {
		w := &f.model.Weights[i]
		one := f.products[i]
		if one.Path != microkernel.ComputeF32 && one.Path != quantized {
			quantized = one.Path
			o.addRows(f.rates, n, w.K)
		}
		flop, bytes := rates.ProductWork(one, n, w.N, w.K)
		o.add(f.rates.Class(one.Class()), flop, bytes)
	}
}

// attention adds an op of attention.
func (f *Forecast) attention(o *OpForecast, op *model.Op, of phase.Phase, n, pos int) {
	seen := func(p int) int {
		if w := op.Attn.Window; w > 0 {
			return min(p, w)
		}
		return p
	}
	h, class := op.Heads, f.rates.Class(rates.Attention)
	if of == phase.Decode { // each row reads the keys and values of another sequence
		flop, bytes := rates.AttentionWork(1, seen(pos+1), h.Q, h.KV, h.Dim)
		o.add(class, float64(n)*flop, float64(n)*bytes)
		return
	}
	flop, bytes := rates.AttentionWork(n, seen(pos+(n+1)/2), h.Q, h.KV, h.Dim)
	o.add(class, flop, bytes)
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
