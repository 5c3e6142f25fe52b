package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/background"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// packPanels is the number of panels of a chunk of packing work.
const packPanels = 8

// loading is the packing of all weights by the workers of a pool.
type loading struct {
	ctx      context.Context // its end stops the packing
	shards   *tp.Shards
	weights  *Weights
	groups   *pool.Grouping
	total    int64
	progress func(done, total int64)
	digest   *Digest // nil: none

	turns background.Turns // nil: the cores have no other user

	done   atomic.Int64          // bytes
	parted atomic.Bool           // workers stopped because another user of the cores waits
	failed atomic.Pointer[error] // the first error
	tables []atomic.Int64        // by table: rows handed out
	taken  [][]atomic.Int64      // by rank and weight: panels handed out
	left   []atomic.Int64        // by weight: panels of all ranks that are not packed
	packed releases
}

func (l *loading) run(p *pool.Pool) error {
	m := l.shards.Whole
	l.left, l.tables = make([]atomic.Int64, len(m.Weights)), make([]atomic.Int64, len(copied(m)))
	l.taken = make([][]atomic.Int64, len(l.shards.List))
	for r := range l.taken {
		l.taken[r] = make([]atomic.Int64, len(m.Weights))
		for i := range m.Weights {
			l.left[i].Add(int64(l.panels(r, i)))
		}
	}
	for l.parted.Store(true); l.parted.Load(); {
		l.runPart(p)
	}
	for _, t := range lookups(m) {
		t.Release(background.In(l.turns))
	}
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return checkFiles(m)
}

// runPart packs until everything is packed or another user of the cores waits.
func (l *loading) runPart(p *pool.Pool) {
	l.parted.Store(false)
	if l.turns != nil {
		l.turns.Acquire()
		defer l.turns.Release()
	}
	p.Run(l.work)
}

// yields reports whether the workers are to stop because another user of the cores waits.
func (l *loading) yields() bool {
	if l.turns == nil || !l.parted.Load() && !l.turns.Preempted() {
		return false
	}
	l.parted.Store(true)
	return true
}

// take hands out at most chunk of the items of a total that taken counts.
func take(taken *atomic.Int64, total, chunk int) (lo, hi int, ok bool) {
	lo = int(taken.Add(int64(chunk))) - chunk
	return lo, min(lo+chunk, total), lo < total
}

// checkFiles returns an error if a file was changed while it was packed.
func checkFiles(m *model.Model) error {
	for i := range m.Weights {
		if err := m.Weights[i].Tensor.Check(); err != nil {
			return err
		}
	}
	for _, t := range lookups(m) {
		if err := t.Check(); err != nil {
			return err
		}
	}
	return nil
}

// lookups returns the tables whose rows are looked up, including the embeddings.
func lookups(m *model.Model) []*gguf.Tensor {
	list := copied(m)
	if m.Embed != nil && m.Tied {
		list = append(list, m.Embed)
	}
	return list
}

// panels returns the number of panels of weight i that a rank holds, in all matrices of a stack.
func (l *loading) panels(rank, i int) int {
	if packed := l.weights.At(rank, i); packed != nil {
		return packed.Layout.Panels() * l.shards.Whole.Weights[i].Matrices()
	}
	return 0
}

// work packs the weights of the worker's rank. Further calls go on where an earlier one stopped.
func (l *loading) work(worker *pool.Worker) {
	if !l.release() {
		return
	}
	at := l.weights.ranks[0].table
	for i, t := range copied(l.shards.Whole) {
		if !l.copyTable(t, &l.tables[i], unsafe.Slice((*byte)(at), len(t.Data))) {
			return
		}
		at = unsafe.Add(at, len(t.Data))
	}
	if !l.digestRest() {
		return
	}
	rank := 0
	if l.groups != nil {
		worker.Use(l.groups)
		rank = worker.Group().ID()
	}
	shard, own := &l.shards.List[rank], &l.weights.ranks[rank]
	for i := range l.shards.Whole.Weights {
		panels := l.panels(rank, i)
		tensor := l.shards.Whole.Weights[i].Tensor
		counter := &l.taken[rank][i]
		if !l.digestTensor(tensor) {
			return
		}
		for lo, hi, ok := take(counter, panels, packPanels); ok; lo, hi, ok = take(counter, panels, packPanels) {
			if !l.read(tensor, func() bool { return own.pack(shard, i, lo, hi) }) {
				return
			}
			if l.left[i].Add(int64(lo-hi)) == 0 {
				l.packed.add(tensor)
			}
			l.count((hi - lo) * own.At(i).Layout.PanelStride())
			if l.yields() || !l.release() {
				return
			}
		}
	}
}

// count adds finished bytes and reports progress.
func (l *loading) count(bytes int) {
	if n := l.done.Add(int64(bytes)); l.progress != nil {
		l.progress(n, l.total)
	}
}

// read calls fn, which reads a tensor and reports whether its values are finite. read reports
// whether to continue. It survives a file that loses its pages meanwhile (gguf.Tensor.Guard).
func (l *loading) read(t *gguf.Tensor, fn func() bool) bool {
	err := t.Guard(func() error {
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		if !fn() {
			return fmt.Errorf("tensor %s has values that are not finite numbers: "+
				"the file is damaged; copy or download it again", t.Name)
		}
		return nil
	})
	if err != nil {
		l.failed.CompareAndSwap(nil, &err)
	}
	return l.failed.Load() == nil
}

// copyTable copies the rows of a table to the memory of the weights, and reports whether to
// continue.
func (l *loading) copyTable(t *gguf.Tensor, given *atomic.Int64, table []byte) bool {
	row := t.Type.RowBytes(t.Dims[0])
	const rows = packPanels * microkernel.PanelWidth
	for lo, hi, ok := take(given, t.Dims[1], rows); ok; lo, hi, ok = take(given, t.Dims[1], rows) {
		own := table[lo*row : hi*row]
		ok := l.read(t, func() bool {
			copy(own, t.Data[lo*row:])
			return finite(t.Type, own) // the copy, which no other process can change
		})
		if !ok {
			return false
		}
		l.count(len(own))
		if l.yields() {
			return false
		}
	}
	return true
}

// pack packs panels [lo, hi) of weight i, counted over all matrices of a stack, and reports whether
// all their values are finite.
func (w *rankWeights) pack(shard *tp.Shard, i, lo, hi int) bool {
	l, weight := w.At(i).Layout, &shard.Model.Weights[i]
	t := weight.Tensor
	stride := t.Type.RowBytes(t.Dims[0])                           // of the tensor
	from, row := t.Type.RowBytes(weight.Col), t.Type.RowBytes(l.K) // of the shard in it
	// One at a time, so that a panel is still cached when it is packed.
	for ; lo < hi; lo++ {
		j, n0 := lo/l.Panels(), lo%l.Panels()*microkernel.PanelWidth
		n1 := min(n0+microkernel.PanelWidth, l.N)
		begin := (j*weight.Rows+weight.Row+n0)*stride + from
		raw := gathered(weight, n0, n1)
		if raw == nil {
			raw = t.Data[begin : begin+(n1-n0-1)*stride+row]
		}
		if !finiteRows(t.Type, raw, n1-n0, row, stride) {
			return false
		}
		packed := unsafe.Slice((*byte)(w.InStack(i, j).Data), l.Bytes())
		if err := microkernel.Pack(packed, l, n0, n1, raw, stride); err != nil {
			panic(err) // the ranges are valid
		}
	}
	return true
}

// gathered returns rows of a weight that are not contiguous in its tensor, or nil if they are.
func gathered(w *model.Weight, n0, n1 int) (raw []byte) {
	if w.RowRanges == nil {
		return nil
	}
	size := w.Tensor.Type.RowBytes(w.Tensor.Dims[0])
	for n := n0; n < n1; n++ {
		raw = append(raw, w.Tensor.Data[w.TensorRow(n)*size:][:size]...)
	}
	return raw
}

// finiteRows is finite for rows of a part of a matrix, stride bytes apart.
func finiteRows(t gguf.Type, raw []byte, rows, row, stride int) bool {
	if row == stride {
		return finite(t, raw)
	}
	for r := range rows {
		if !finite(t, raw[r*stride:][:row]) {
			return false
		}
	}
	return true
}
