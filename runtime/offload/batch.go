package offload

import (
	"unsafe"

	"sandwich/runtime/device"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// inputs are what a forward reads in addition to weights and cache: rows of embeddings and angles,
// and words that describe the batch. They stay on the device until the forward is done.
type inputs struct {
	angles device.Slice
	words  device.Slice
	host   []uint32 // what words holds
	stores []storeInputs
	logits place // of the rows whose logits are wanted
}

// storeInputs says where the words of a store are.
type storeInputs struct {
	segments  place // see kernels.Rotate
	sequences place // see kernels.Attention
	tables    place
	longest   int // rows of the longest sequence
	list      []attention.Segment
}

// place is a list in inputs.words: the byte at which it begins and its entries.
type place struct{ at, n int }

// describe collects the words of a batch.
func (in *inputs) describe(b *kvcache.Batch, kinds []kvcache.Kind) {
	in.host = in.host[:0]
	in.stores = make([]storeInputs, len(kinds))
	for store, kind := range kinds {
		s := &in.stores[store]
		s.list = attention.Segments(b.Spans, store)
		s.segments = in.begin(len(s.list))
		for _, g := range s.list {
			in.put(g.Row, g.N, g.Pos%kvcache.BlockTokens, int(g.Block))
		}
		all := attention.Sequences(kind, store, b.Spans)
		s.sequences = in.begin(len(all))
		at := 0
		for _, q := range all {
			in.put(q.Row, q.N, q.Pos, at)
			at += len(q.Table)
			s.longest = max(s.longest, q.N)
		}
		s.tables = in.begin(at)
		for _, q := range all {
			for _, block := range q.Table {
				in.put(int(block))
			}
		}
	}
	in.logits = in.begin(len(b.LogitRows))
	for _, row := range b.LogitRows {
		in.put(int(row))
	}
	in.begin(0)
}

// begin starts a list of n entries at an aligned place.
func (in *inputs) begin(n int) place {
	for len(in.host)%(alignment/4) != 0 {
		in.put(0)
	}
	return place{4 * len(in.host), n}
}

func (in *inputs) put(words ...int) {
	for _, w := range words {
		in.host = append(in.host, uint32(w))
	}
}

// at returns the binding of a list.
func (in *inputs) at(p place) device.Slice {
	return device.Slice{Buffer: in.words.Buffer, Offset: uint64(p.at)}
}

// embed returns the scaled embeddings of the batch's tokens, [rows][stride].
func (r *Runner) embed(b *kvcache.Batch, op *model.Op) ([]float32, error) {
	hidden, stride := r.model.Dims.Hidden, r.strides[model.BufX]
	x := make([]float32, b.Rows()*stride)
	for i, token := range b.Tokens {
		row := x[i*stride:][:hidden]
		if err := r.assembly.Weights.Tokens.Row(row, int(token)); err != nil {
			return nil, err
		}
		if op.Scale != 1 {
			for k := range row {
				row[k] *= op.Scale
			}
		}
	}
	return x, nil
}

// fillAngles returns the cosines and sines of the batch's positions, [ropes][rows][width].
func (r *Runner) fillAngles(b *kvcache.Batch) []float32 {
	if r.angleWidth == 0 {
		return nil
	}
	x := make([]float32, len(r.ropes)*b.Rows()*r.angleWidth)
	angles := attention.NewAngles(r.model, b.Rows(), unsafe.Pointer(&x[0]))
	for i := range b.Spans {
		s := &b.Spans[i]
		for row := range s.Rows {
			r.ropes.Fill(&angles, s.Row+row, s.Pos+row)
		}
	}
	return x
}
