package exec

import (
	"slices"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// embedding is the table of the tokens: its own copy in memory of the weights, or the head that is
// the same matrix, whose panels lose nothing. Never the model's file, which others may cut or
// overwrite while it serves.
type embedding struct {
	table unsafe.Pointer // rows as the file has them; nil where the head is the embedding
	bytes int            // of it
	typ   gguf.Type
	width int
	heads []headPiece // what each rank that has some holds of the head; where there is no table
}

// headPiece is the rows [first, first+N) of a head that is also the embedding.
type headPiece struct {
	first  int
	layout microkernel.Layout
	packed []byte
}

// tables are the matrices whose rows are looked up and that no head is.
func tables(m *model.Model) (list []*gguf.Tensor) {
	if m.Embed != nil && !m.Tied {
		list = append(list, m.Embed)
	}
	if t := inputTable(m); t != nil {
		list = append(list, t)
	}
	return list
}

// inputTable is that of the layers' own inputs; nil where there are none.
func inputTable(m *model.Model) *gguf.Tensor {
	for i := range m.Ops {
		if t := m.Ops[i].Table; t != nil {
			return t.Tensor
		}
	}
	return nil
}

// tableBytes is the room that the tables take beside the packed matrices.
func tableBytes(m *model.Model) (bytes int) {
	for _, t := range tables(m) {
		bytes += len(t.Data)
	}
	return bytes
}

// findEmbedding says where forwards find the rows of tokens.
func (w *Weights) findEmbedding(p *Shards) {
	m := p.Whole
	if m.Embed == nil {
		return
	}
	w.embed = embedding{typ: m.Embed.Type, width: m.Embed.Dims[0]}
	at := w.ranks[0].table
	for _, t := range tables(m) {
		e := embedding{typ: t.Type, width: t.Dims[0], table: at, bytes: len(t.Data)}
		if at = unsafe.Add(at, e.bytes); t == m.Embed {
			w.embed = e
		} else {
			w.inputs = e
		}
	}
	if !m.Tied {
		return
	}
	head := slices.IndexFunc(m.Weights, func(w model.Weight) bool { return w.Role == "head" })
	for r := range p.list {
		if packed := w.At(r, head); packed != nil {
			w.embed.heads = append(w.embed.heads, headPiece{
				first: p.list[r].model.Weights[head].Row, layout: packed.Layout,
				packed: unsafe.Slice((*byte)(packed.Data), packed.Layout.Bytes()),
			})
		}
	}
}

// row writes the embedding of a token.
func (e *embedding) row(dst []float32, token int) error {
	if e.table != nil {
		size := e.typ.RowBytes(e.width)
		return gguf.Dequantize(dst, e.typ, unsafe.Slice((*byte)(e.table), e.bytes)[token*size:][:size])
	}
	for i := range e.heads {
		if h := &e.heads[i]; token >= h.first && token-h.first < h.layout.N {
			return microkernel.Unpack(dst, h.packed, h.layout, token-h.first, 0, h.layout.K)
		}
	}
	panic("exec: no rank holds the embedding of a token") // the pieces cover the vocabulary
}
