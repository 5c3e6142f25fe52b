// Package offload runs forwards of a model on a device (package device), for example the prefill of
// prompts, while the cores decode.
//
// A Runner holds a copy of the packed weights and of the KV cache in device memory, in the CPU's
// layouts. It launches one kernel or a few per op of the model. Results have the bits of package
// exec, so that a sequence may move between the device and the cores at any chunk: after each
// segment of a forward the Runner copies the new keys and values to the cores' cache, and before a
// forward it copies blocks that the cores have written to the device.
//
// Supported are dense decoders (embedding, RMS norm, matrix products, rotation, attention, sums) on
// one rank, with paths int8, int8-256, int8-k and f32, f16 KV blocks and float32 attention. Other
// models and plans are refused by the name of what is missing.
package offload

import (
	"cmp"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/runtime/device"
	"sandwich/runtime/exec"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/offload/handover"
	"sandwich/runtime/offload/unified"
	"sandwich/runtime/offload/variants"
)

// Runner runs forwards of one model on a device. Forward serves one caller at a time; CoresWrite,
// an Upload and Close may be used concurrently with it.
type Runner struct {
	dev      device.Device
	info     device.Info // from when the Runner was opened, since Device.Info may call the driver
	assembly *exec.Assembly
	model    *model.Model
	layers   *tp.Layers
	kv       *attention.KVStore
	mem      *memory
	programs programs
	static   *variants.Cache[staticProduct] // nil: products have dynamic rows only
	mirror   *mirror
	marks    *marks
	blocks   *blockCopier
	uploads  *uploads
	sets     []*set

	ropes      attention.Ropes
	ropeOf     map[*model.Rope]int
	angleWidth int
	strides    [model.NumBufs]int // words of a row
	rows       int                // most rows of a forward
	onCores    handover.Parts     // ops that the cores compute
	borders    *handover.Layout   // activations at the borders of onCores

	times  *predictor
	logits []float32 // of the last forward that ended
	mu     sync.Mutex
	closed bool
}

// Options of Open.
type Options struct {
	Device    device.Device
	Assembly  *exec.Assembly // the model on the cores, which outlives the Runner
	Rows      int            // most rows of a forward
	LogitRows int            // most rows whose logits are wanted
	Sets      int            // sets of activations
	Context   int            // positions of a sequence
	Rounding  bool           // results of the device may differ by rounding
	Static    bool           // compile kernels for the rows that Prepare names
	// Prepared is called from another goroutine when a kernel of Prepare is ready, or with the
	// reason why it cannot be used. It may be nil.
	Prepared func(kernel string, err error)
	// ExpertsOnCores leaves the routing and the products of experts to the cores. Forwards then
	// need Cores.
	ExpertsOnCores bool
	// Layers is the number of layers, from the first on, that the device computes, with the head;
	// 0: all. The cores compute the others, and forwards then need Cores. See Fit.
	Layers int
	// LeastTimeout is the least time after which a segment whose duration is known counts as hung.
	// 0 is 2 seconds.
	LeastTimeout time.Duration
	// Memory, unless nil, allocated the weights and the KV cache of the assembly. What the device
	// shares of them is not copied.
	Memory *unified.Memory
}

// Open copies the weights to the device, compiles the kernels of a prefill and allocates
// activations. Errors wrap ErrUnsupported if the device cannot run the model, device.ErrMemory if
// it has too little memory, or device.ErrLost. The caller keeps the device.
func Open(o Options) (*Runner, error) {
	r, err := newRunner(&o)
	if err != nil {
		return nil, err
	}
	info, need := infoOf(o.Device), r.needs(o)
	if info.FreeBytes > 0 && info.FreeBytes < need.all() {
		return nil, need.refusal(info)
	}
	if err := r.open(o); err != nil {
		if errors.Is(err, device.ErrMemory) {
			err = need.refusal(info)
		}
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Fit returns the most layers that the free memory of the device holds together with the head, 0 if
// it holds none or does not report its free memory.
func Fit(o Options) int {
	free := infoOf(o.Device).FreeBytes
	tooMany := func(layers int) bool {
		part := o
		part.Layers, part.Static = layers, false
		r, err := newRunner(&part)
		if err != nil {
			return true
		}
		need := r.needs(part)
		return need.all()+need.spare() > free
	}
	return sort.Search(o.Assembly.Model.Dims.Layers-1, func(i int) bool { return tooMany(i + 1) })
}

// newRunner returns a Runner that has allocated nothing on the device.
func newRunner(o *Options) (*Runner, error) {
	parts, err := o.partsOf()
	if err != nil {
		return nil, err
	}
	if err := check(o.Assembly, parts); err != nil {
		return nil, err
	}
	info := o.Device.Info()
	if info.Exact != device.AllExact && !o.Rounding {
		return nil, unsupported("%s: arithmetic that is not exact (%s)", info.Name, device.AllExact&^info.Exact)
	}
	a := o.Assembly
	r := &Runner{dev: o.Device, info: info, assembly: a, model: a.Model, layers: &a.Shards.List[0].Layers, kv: a.KV[0],
		programs: programs{dev: o.Device, rounding: o.Rounding, list: map[description]device.Program{}}, rows: o.Rows,
		onCores: parts, ropeOf: map[*model.Rope]int{}, times: newPredictor(a.Model)}
	r.times.least = cmp.Or(o.LeastTimeout, minTimeout)
	if o.Static {
		r.static = variants.New[staticProduct](variants.Options{Device: o.Device, Ended: o.Prepared})
	}
	r.mirror = newMirror(r.layers, a.Stores)
	r.ropes = attention.NewOps(a.Model, r.layers, o.Context).Ropes
	for i, rope := range a.Model.Ropes() {
		r.ropeOf[rope] = i
		r.angleWidth = max(r.angleWidth, rope.Dim)
	}
	for i := range r.strides {
		if parts.OnDevice(a.Model, model.Buf(i)) {
			r.strides[i] = (a.Model.Width(model.Buf(i)) + 3) / 4 * 4
		}
	}
	r.borders = handover.NewLayout(parts, &r.strides, r.rows)
	return r, nil
}

// partsOf returns the ops that the cores compute in forwards on a device.
func (o *Options) partsOf() (handover.Parts, error) {
	if o.Layers > 0 {
		list := handover.Layers(o.Assembly.Model, o.Layers)
		if list == nil || o.ExpertsOnCores {
			return nil, fmt.Errorf("a device cannot compute the first %d layers of this model alone", o.Layers)
		}
		return list, nil
	}
	if !o.ExpertsOnCores {
		return nil, nil
	}
	list := handover.Experts(o.Assembly.Model)
	if list == nil {
		return nil, errors.New("the model has no experts that the cores could compute")
	}
	return list, nil
}

func (r *Runner) open(o Options) (err error) {
	if err := r.checkAlignment(); err != nil {
		return err
	}
	if r.mem, err = load(r.dev, r.assembly, r.onCores, o.Memory); err != nil {
		return err
	}
	r.blocks = &blockCopier{dev: r.dev, host: device.HostUsage(r.dev), model: r.model, layers: r.layers, kv: r.kv,
		onDevice: r.mem.kv, shared: r.mem.sharesKV, onCores: r.onCores}
	r.blocks.gathers = r.blocks.canGather()
	r.mirror.shared = r.mem.sharesKV
	if r.marks, err = newMarks(r.mem); err != nil {
		return err
	}
	r.uploads = &uploads{blockCopier: r.blocks, marks: r.marks, mirror: r.mirror, least: r.times.least}
	if err := r.marks.allocate(&r.uploads.mark); err != nil {
		return err
	}
	for range o.Sets {
		s, err := r.newSet(o.LogitRows)
		if err != nil {
			return err
		}
		r.sets = append(r.sets, s)
	}
	return r.compile()
}

// needs returns the memory that a Runner will take in addition to memory of the cores, without
// programs and the inputs of forwards.
func (r *Runner) needs(o Options) (n needs) {
	sharesWeights := o.Memory.Buffer(r.assembly.Weights.Memory(0)) != nil
	for i := range r.model.Weights {
		if !r.onCores.Multiply(r.model, i) && !sharesWeights {
			n.weights += uint64(r.assembly.Weights.At(0, i).Layout.Bytes())
		}
	}
	if o.Memory.Buffer(r.assembly.KV.Memory(0)) == nil {
		n.kv = kvBytes(r.assembly, r.onCores)
	}
	for i, stride := range r.strides {
		n.activations += uint64(4 * stride * r.bufferRows(model.Buf(i), o.LogitRows))
	}
	n.activations = (n.activations + uint64(4*r.rows*r.quantizedWords()) + r.borders.Bytes) * uint64(o.Sets)
	return n
}

// checkAlignment refuses layouts whose parts cannot be bound.
func (r *Runner) checkAlignment() error {
	if r.angleWidth%4 != 0 {
		return unsupported("a rotation of %d dimensions", r.angleWidth)
	}
	for layer := range r.layers.Of {
		if p := r.kv.Place(layer); r.layers.Keeps(layer) && (p.First|p.Head|p.Block)%alignment != 0 {
			return unsupported("layer %d: KV blocks of %d bytes", layer, p.Block)
		}
	}
	return nil
}

// compile compiles the kernels of a full prefill, so that no request waits for it.
func (r *Runner) compile() error {
	for i := range r.model.Ops {
		if r.onCores.Has(i) {
			continue
		}
		for _, rows := range []int{1, r.rows} {
			for _, d := range r.kernelsOf(i, rows) {
				if _, err := r.programs.of(d); err != nil {
					return fmt.Errorf("op %s: %w", r.model.Ops[i].Name, err)
				}
			}
		}
	}
	return nil
}

// kernelsOf lists the kernels that op i launches for a number of rows.
func (r *Runner) kernelsOf(i, rows int) (list []description) {
	op := &r.model.Ops[i]
	switch op.Kind {
	case model.OpNorm:
		list = append(list, r.normOf(i))
	case model.OpAddNorm:
		if op.Post != nil {
			list = append(list, r.normRows())
		}
		if op.Norm == nil {
			list = append(list, addRows{})
		} else {
			list = append(list, r.normOf(i))
		}
	case model.OpMatMul:
		holds := r.quantizedBefore(i)
		for j, w := range op.W {
			if path := r.assembly.Weights.At(0, w).Compute; path != microkernel.ComputeF32 && path != holds {
				holds = path
				list = append(list, quantization(path, r.assembly.Weights.At(0, w).Layout.K))
			}
			if op.Act == 0 || j == 0 {
				list = append(list, r.product(op, j, rows))
			}
		}
	case model.OpRotate:
		list = append(list, rotation(op))
		if r.blocks.copiesRows(rows) {
			list = append(list, gatherOf(op))
		}
	case model.OpAttention:
		if part, merge, ok := partsOf(op, rows); ok {
			list = append(list, part, merge)
		} else {
			list = append(list, attentionOf(op))
		}
	case model.OpGather:
		list = append(list, gatherRows{})
	}
	return list
}

// product describes the kernel of weight i of a matrix product.
func (r *Runner) product(op *model.Op, i, rows int) kernels.Product {
	p := r.assembly.Weights.At(0, op.W[i])
	g := kernels.GEMM{Weight: p.Layout.Type, Path: p.Compute, Bias: biasOf(op, i) != nil}
	if op.Act != 0 {
		g.Epilogue, g.Unit = kernels.Gated, gatedUnits[op.Act]
	}
	return g.For(rows, r.info.MatrixUnit)
}

func biasOf(op *model.Op, i int) *model.Vector {
	if i < len(op.Bias) {
		return op.Bias[i]
	}
	return nil
}

func rotation(op *model.Op) kernels.Rotate {
	k := kernels.Rotate{HeadDim: op.Heads.Dim, QNorm: op.QNorm != nil, KNorm: op.KNorm != nil}
	if op.Rope != nil {
		k.Rotated, k.Neox = op.Rope.Dim, op.Rope.Neox
	}
	return k
}

// CoresWrite notes that the cores write the keys and values of a batch, which the device then does
// not have.
func (r *Runner) CoresWrite(b *kvcache.Batch) { r.mirror.coresWrite(b.Spans) }

// NewUpload returns an Upload for a forward of a batch on the cores.
func (r *Runner) NewUpload(b *kvcache.Batch) *Upload { return newUpload(r.uploads, b) }

// Invalidate notes that a block of a store in the cores' cache has other content than before.
func (r *Runner) Invalidate(store int, block kvcache.BlockID) {
	r.mirror.forget([]staleBlock{{store, block}})
}

// Logits returns the logits of LogitRows[i] of the last forward that ended.
func (r *Runner) Logits(i int) []float32 {
	return r.logits[i*r.strides[model.BufLogits]:][:r.model.Outputs]
}

// Exact reports whether the results of the device have the bits of those of the cores, by its
// self-test and that of each kernel that was compiled.
func (r *Runner) Exact() bool { return r.info.Exact == device.AllExact && r.programs.exact() }

// Bytes returns the device memory that the Runner holds, without that of the cores.
func (r *Runner) Bytes() uint64 { return r.mem.bytes }

// Copied returns the bytes of weights and KV cache that the device holds in addition to those of
// the cores.
func (r *Runner) Copied() uint64 { return r.mem.copied }

// NeedsCores reports whether the cores compute a part of each forward.
func (r *Runner) NeedsCores() bool { return r.onCores != nil }

// SharesKV reports whether the device writes to the KV cache of the cores.
func (r *Runner) SharesKV() bool { return r.mem.sharesKV }

// Close frees the memory on the device. No forward may run then or later.
func (r *Runner) Close() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.dev.Err() != nil {
		return nil
	}
	r.closed = true
	if r.static != nil {
		err = r.static.Close()
	}
	if r.uploads != nil {
		if err := r.uploads.complete(); errors.Is(err, device.ErrLost) {
			return err // its memory may be in use; it is freed with the device
		}
		err = errors.Join(err, r.uploads.free())
	}
	for _, s := range r.sets {
		err = errors.Join(err, s.free())
	}
	err = errors.Join(err, r.programs.free())
	if r.mem != nil {
		err = errors.Join(err, r.mem.free())
	}
	return err
}
