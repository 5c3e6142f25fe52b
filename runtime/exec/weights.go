package exec

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// Packed is one weight in the layout its kernels read, and the arithmetic that belongs to it.
type Packed struct {
	Layout  microkernel.Layout
	Compute microkernel.Compute
	Data    unsafe.Pointer
}

func (p *Packed) quantizedInput() bool { return p.Compute == microkernel.ComputeInt8 }

// Weights are all matrices of a model, packed once, shared by every phase (DESIGN rule 5).
type Weights struct {
	packed []Packed // the matrices of a stack follow each other
	first  []int    // by Model.Weights: its first matrix in packed
	memory *mem.Buffer
}

// At returns the packed form of Model.Weights[i], the first matrix of a stack.
func (w *Weights) At(i int) *Packed { return &w.packed[w.first[i]] }

// InStack returns matrix j of the stack Model.Weights[i].
func (w *Weights) InStack(i, j int) *Packed { return &w.packed[w.first[i]+j] }

// Bytes is the size of all packed weights.
func (w *Weights) Bytes() int64 { return int64(w.memory.Len()) }

// Residency looks up on which NUMA nodes the packed weights are.
func (w *Weights) Residency() (mem.Residency, error) { return w.memory.Residency() }

// Free returns the memory; nothing may read the weights then or afterwards.
func (w *Weights) Free() error { return w.memory.Free() }

// MaxQuantizedK is the longest activation row that must be rounded to int8, 0 where no weight wants that.
func (w *Weights) MaxQuantizedK() int {
	k := 0
	for i := range w.packed {
		if p := &w.packed[i]; p.quantizedInput() {
			k = max(k, p.Layout.K)
		}
	}
	return k
}

func layoutOf(w *model.Weight) (microkernel.Layout, error) {
	t, err := microkernel.ParseWeightType(w.Tensor.Type.String())
	if err != nil {
		return microkernel.Layout{}, fmt.Errorf("tensor %s: %w", w.Tensor.Name, err)
	}
	l := microkernel.Layout{Type: t, N: w.N, K: w.K}
	if err := l.Validate(); err != nil {
		return l, fmt.Errorf("tensor %s: %w", w.Tensor.Name, err)
	}
	return l, nil
}

// PackedBytes is what LoadWeights will allocate for a model; types without a layout count as nothing.
func PackedBytes(m *model.Model) (total int64) {
	for i := range m.Weights {
		if l, err := layoutOf(&m.Weights[i]); err == nil {
			total += int64(l.Bytes()) * int64(m.Weights[i].Matrices())
		}
	}
	return total
}

// LoadWeights packs every matrix of the model on all workers of the pool. The pages of a raw tensor are given back as
// soon as it is packed, so that weights are in memory once. A weight with a value that is not finite is refused by name.
// progress, where given, hears of finished bytes and may be called from several threads.
func LoadWeights(m *model.Model, plan *plans.Plan, p *pool.Pool, progress func(done, total int64)) (*Weights, error) {
	w := &Weights{}
	for i := range m.Weights {
		l, err := layoutOf(&m.Weights[i])
		if err != nil {
			return nil, err
		}
		c, err := computeOf(plan, &m.Weights[i])
		if err != nil {
			return nil, err
		}
		w.first = append(w.first, len(w.packed))
		for range m.Weights[i].Matrices() {
			w.packed = append(w.packed, Packed{Layout: l, Compute: c})
		}
	}
	total := PackedBytes(m)
	memory, err := mem.Alloc(int(total), mem.Options{Node: mem.AnyNode, Huge: true})
	if err != nil {
		return nil, fmt.Errorf("packing the weights: %w", err)
	}
	w.memory = memory
	at := memory.Pointer()
	for i := range w.packed {
		w.packed[i].Data = at
		at = unsafe.Add(at, w.packed[i].Layout.Bytes())
	}
	if err := w.pack(m, p, total, progress); err != nil {
		w.Free()
		return nil, err
	}
	return w, nil
}

// computeOf looks up which arithmetic the plan gives a weight.
func computeOf(plan *plans.Plan, w *model.Weight) (microkernel.Compute, error) {
	key := plans.WeightKey{N: w.N, K: w.K, Type: w.Tensor.Type.String()}
	for i := range plan.Weights {
		if plan.Weights[i].WeightKey == key {
			return microkernel.ParseCompute(plan.Weights[i].Compute)
		}
	}
	return 0, fmt.Errorf("the plan says nothing of weight %s (%s): it was made for another model", key, w.Tensor.Name)
}

// packPanels is how many panels one piece of packing work has.
const packPanels = 8

// packing is the progress of one weight: which panels are handed out, and how many are packed.
type packing struct {
	next pool.Counter
	done atomic.Int64
}

func (w *Weights) pack(m *model.Model, p *pool.Pool, total int64, progress func(done, total int64)) error {
	var done atomic.Int64
	var bad atomic.Pointer[gguf.Tensor]
	var embedding pool.Counter
	work := make([]packing, len(m.Weights))
	p.Run(func(worker *pool.Worker) {
		if !checkEmbedding(m, worker, &embedding) {
			bad.CompareAndSwap(nil, m.Embed)
		}
		for i := range m.Weights {
			weight, stride := &m.Weights[i], w.At(i).Layout.PanelStride()
			panels := w.At(i).Layout.Panels() * weight.Matrices()
			for lo, hi, ok := worker.Next(&work[i].next, panels, packPanels); ok; lo, hi, ok = worker.Next(&work[i].next, panels, packPanels) {
				if !w.packRange(i, weight.Tensor, lo, hi) {
					bad.CompareAndSwap(nil, weight.Tensor)
				}
				if work[i].done.Add(int64(hi-lo)) == int64(panels) {
					_ = weight.Tensor.Release() // advice: the pages stay in the page cache whatever it answers
				}
				n := done.Add(int64((hi - lo) * stride))
				if progress != nil {
					progress(n, total)
				}
			}
		}
	})
	if m.Embed != nil {
		_ = m.Embed.Release()
	}
	if t := bad.Load(); t != nil {
		return fmt.Errorf("tensor %s has values that are not finite numbers: the file is damaged, copy or download it again", t.Name)
	}
	return nil
}

// checkEmbedding looks through an embedding that is not packed, as a head that shares it would be: its rows are read in
// place, so that only a look at all of them shows damage before a request meets it.
func checkEmbedding(m *model.Model, worker *pool.Worker, next *pool.Counter) bool {
	e := m.Embed
	if e == nil || m.Tied {
		return true
	}
	row := e.Type.RowBytes(e.Dims[0])
	for lo, hi, ok := worker.Next(next, e.Dims[1], packPanels*microkernel.PanelWidth); ok; lo, hi, ok = worker.Next(next, e.Dims[1], packPanels*microkernel.PanelWidth) {
		if !finite(e.Type, e.Data[lo*row:hi*row]) {
			return false
		}
	}
	return true
}

// packRange packs panels [lo, hi) of weight i, those of a stack counted through, and says whether all their values are
// finite.
func (w *Weights) packRange(i int, raw *gguf.Tensor, lo, hi int) bool {
	l := w.At(i).Layout
	row := raw.Type.RowBytes(l.K)
	for lo < hi {
		j, first := lo/l.Panels(), lo%l.Panels()
		last := min(first+hi-lo, l.Panels())
		n0, n1 := first*microkernel.PanelWidth, min(last*microkernel.PanelWidth, l.N)
		rows := raw.Data[(j*l.N+n0)*row : (j*l.N+n1)*row]
		if !finite(raw.Type, rows) {
			return false
		}
		packed := unsafe.Slice((*byte)(w.InStack(i, j).Data), l.Bytes())
		if err := microkernel.Pack(packed, l, n0, n1, rows, 0); err != nil {
			panic(err) // ranges are ours
		}
		lo += last - first
	}
	return true
}
