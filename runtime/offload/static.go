package offload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/runtime/device"
	"sandwich/runtime/model"
	"sandwich/runtime/offload/variants"
)

// staticProduct describes a product of one shape.
type staticProduct = kernels.Static

// Static reports whether an op of a forward of so many rows may have kernels of fixed rows.
func Static(op *model.Op, rows int) bool {
	return op.Kind == model.OpMatMul && !op.Wanted && rows >= minStatic
}

// shape describes the product of weight i of an op.
func (r *Runner) shape(op *model.Op, i, rows int) staticProduct {
	p := r.assembly.Weights.At(0, op.W[i])
	s := staticProduct{Product: r.product(op, i, rows), M: rows, N: p.Layout.N, K: p.Layout.K,
		AStride: r.strides[op.In], WStride: p.Layout.PanelStride() / 4}
	if p.Compute != microkernel.ComputeF32 {
		s.AStride = p.Compute.ActRowBytes(p.Layout.K) / 4
	}
	if i < len(op.Outs) {
		s.CStride = r.strides[op.Outs[i]]
	}
	return s
}

// Prepare compiles kernels of products for forwards of so many rows in the background, urgent ones
// first. Forwards launch those that are ready, whose results have the bits of the others. Prepare
// may be called concurrently with a forward; it does nothing without Options.Static.
func (r *Runner) Prepare(rows int, urgent bool) {
	if r.static == nil || rows < minStatic || rows > r.rows {
		return
	}
	var jobs []variants.Job[staticProduct]
	for n := range r.model.Ops {
		op := &r.model.Ops[n]
		if !Static(op, rows) {
			continue
		}
		for i := range op.W {
			if op.Act != 0 && i > 0 {
				break // the kernel of the gate computes both
			}
			s := r.shape(op, i, rows)
			jobs = append(jobs, variants.Job[staticProduct]{Key: s, Kernel: func() (*devgen.Kernel, error) {
				if _, err := r.programs.of(s.Product); err != nil { // which forwards use until then
					return nil, err
				}
				return s.Kernel()
			}, Check: func(p device.Program) error { return r.checkStatic(op, i, s, p) }})
		}
	}
	r.static.Prepare(urgent, jobs...)
}

// ready returns the compiled kernel of a product of one shape, or nil.
func (r *Runner) ready(s staticProduct) device.Program {
	if r.static == nil || s.M < minStatic {
		return nil
	}
	return r.static.Ready(s)
}

// Variants returns counts of the kernels that Prepare named.
func (r *Runner) Variants() (s variants.Stats) {
	if r.static != nil {
		s = r.static.Stats()
	}
	return s
}

// same has the kernels of one shape whose results equalled those of the others in this process.
var same sync.Map // of struct{} by verifiedKey

// checkStatic returns an error if a kernel of one shape and the one of every shape differ in a bit
// of the product of weight i of an op with random activations. The latter has passed its own
// self-test.
func (r *Runner) checkStatic(op *model.Op, i int, s staticProduct, p device.Program) error {
	info := r.dev.Info()
	key := verifiedKey{info.Name, info.API, info.Driver, p.Kernel().Name, info.MatrixUnit, r.programs.rounding}
	if _, ok := same.Load(key); ok || info.Simulated {
		return nil
	}
	dynamic, err := r.programs.of(s.Product)
	if err != nil {
		return err
	}
	c := contents{rng: rand.New(rand.NewPCG(2, 47)), buffers: map[string][]byte{}}
	c.activations("a", r.assembly.Weights.At(0, op.W[i]).Compute, s.M, s.K, s.AStride)
	want, err := r.runProduct(op, i, s, dynamic, c.buffers["a"])
	if err != nil {
		return err
	}
	got, err := r.runProduct(op, i, s, p, c.buffers["a"])
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("kernel %s: results differ from those of %s", p.Kernel().Name, dynamic.Kernel().Name)
	}
	same.Store(key, struct{}{})
	return nil
}

// runProduct runs a product of weight i of an op with the activations a and returns its result.
func (r *Runner) runProduct(op *model.Op, i int, s staticProduct, p device.Program, a []byte) (c []byte, err error) {
	c = make([]byte, 4*s.M*s.CStride)
	in, err := r.filled(a)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Free()) }()
	out, err := r.filled(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Free()) }()
	buffers := bindings{"a": {Buffer: in}, "c": {Buffer: out}, "w": r.mem.weights[op.W[i]]}
	if op.Act != 0 {
		buffers["up"] = r.mem.weights[op.W[1]]
	}
	if b := biasOf(op, i); b != nil {
		buffers["bias"] = r.mem.vectors[b]
	}
	l := device.Launch{Program: p, Groups: s.Grid(s.M, s.N), Push: []uint32{uint32(s.M), uint32(s.N), uint32(s.K),
		uint32(s.AStride), uint32(s.WStride), uint32(s.CStride)}}
	for _, b := range p.Kernel().Bindings {
		l.Buffers = append(l.Buffers, buffers[b.Name])
	}
	ctx, cancel := context.WithTimeout(context.Background(), verifyTimeout)
	defer cancel()
	if err := device.RunOnce(ctx, r.dev, l); err != nil {
		return nil, err
	}
	return c, r.dev.Read(out, 0, c)
}

// filled returns a buffer on the device with the data.
func (r *Runner) filled(data []byte) (device.Buffer, error) {
	b, err := r.dev.Alloc(uint64(len(data)), device.DeviceLocal)
	if err != nil {
		return nil, err
	}
	if err := r.dev.Write(b, 0, data); err != nil {
		return nil, errors.Join(err, b.Free())
	}
	return b, nil
}
