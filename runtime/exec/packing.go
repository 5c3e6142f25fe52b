package exec

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// packPanels is how many panels one piece of packing work has.
const packPanels = 8

// loading is the packing of all weights by the workers of a pool.
type loading struct {
	parts    *Parts
	weights  *Weights
	groups   *pool.Grouping
	total    int64
	progress func(done, total int64)

	done      atomic.Int64 // bytes
	bad       atomic.Pointer[gguf.Tensor]
	embedding pool.Counter
	pieces    [][]pool.Counter // by rank and weight: which panels are handed out
	left      []atomic.Int64   // by weight: panels that are not packed, of all ranks
}

func (l *loading) run(p *pool.Pool) error {
	m := l.parts.Whole
	l.left = make([]atomic.Int64, len(m.Weights))
	l.pieces = make([][]pool.Counter, len(l.parts.list))
	for r := range l.pieces {
		l.pieces[r] = make([]pool.Counter, len(m.Weights))
		for i := range m.Weights {
			l.left[i].Add(int64(l.panels(r, i)))
		}
	}
	p.Run(l.work)
	if m.Embed != nil {
		_ = m.Embed.Release()
	}
	if t := l.bad.Load(); t != nil {
		return fmt.Errorf("tensor %s has values that are not finite numbers: the file is damaged, copy or download it again", t.Name)
	}
	return nil
}

// panels is how many panels a rank holds of weight i, those of a stack counted through.
func (l *loading) panels(rank, i int) int {
	if packed := l.weights.At(rank, i); packed != nil {
		return packed.Layout.Panels() * l.parts.Whole.Weights[i].Matrices()
	}
	return 0
}

// work packs what the worker's rank holds.
func (l *loading) work(worker *pool.Worker) {
	m := l.parts.Whole
	if !checkEmbedding(m, worker, &l.embedding) {
		l.bad.CompareAndSwap(nil, m.Embed)
	}
	rank := 0
	if l.groups != nil {
		worker.Use(l.groups)
		rank = worker.Group().ID()
	}
	part, own := &l.parts.list[rank], &l.weights.ranks[rank]
	for i := range m.Weights {
		panels := l.panels(rank, i)
		tensor := m.Weights[i].Tensor
		for lo, hi, ok := worker.Next(&l.pieces[rank][i], panels, packPanels); ok; lo, hi, ok = worker.Next(&l.pieces[rank][i], panels, packPanels) {
			if !own.pack(part, i, lo, hi) {
				l.bad.CompareAndSwap(nil, tensor)
			}
			if l.left[i].Add(int64(lo-hi)) == 0 {
				_ = tensor.Release() // advice: the pages stay in the page cache whatever it answers
			}
			n := l.done.Add(int64((hi - lo) * own.At(i).Layout.PanelStride()))
			if l.progress != nil {
				l.progress(n, l.total)
			}
		}
	}
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

// pack packs panels [lo, hi) of weight i, those of a stack counted through, and says whether all their values are
// finite.
func (w *rankWeights) pack(part *part, i, lo, hi int) bool {
	l, weight := w.At(i).Layout, &part.model.Weights[i]
	t := weight.Tensor
	stride := t.Type.RowBytes(t.Dims[0])                           // of the tensor
	from, row := t.Type.RowBytes(weight.Col), t.Type.RowBytes(l.K) // of the piece in it
	for lo < hi {
		j, first := lo/l.Panels(), lo%l.Panels()
		last := min(first+hi-lo, l.Panels())
		n0, n1 := first*microkernel.PanelWidth, min(last*microkernel.PanelWidth, l.N)
		begin := (j*t.Dims[1]+weight.Row+n0)*stride + from
		raw := t.Data[begin : begin+(n1-n0-1)*stride+row]
		if !finiteRows(t.Type, raw, n1-n0, row, stride) {
			return false
		}
		packed := unsafe.Slice((*byte)(w.InStack(i, j).Data), l.Bytes())
		if err := microkernel.Pack(packed, l, n0, n1, raw, stride); err != nil {
			panic(err) // ranges are ours
		}
		lo += last - first
	}
	return true
}

// finiteRows is finite for rows of a piece of a matrix, stride bytes apart.
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
