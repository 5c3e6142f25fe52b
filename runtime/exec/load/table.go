package load

import (
	"slices"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// Table is a matrix whose rows are looked up, such as the embeddings of the tokens: a copy in the
// memory of the weights, or the packed head if that is the same matrix. It is never the model's
// file, which another process may change while it is served.
type Table struct {
	rows  unsafe.Pointer // in the form of the file; nil: the head is the table
	bytes int            // of rows
	typ   gguf.Type
	width int
	heads []headRows // without rows: the parts of the head
}

// headRows are the rows [first, first+N) of a head that is also the table.
type headRows struct {
	first  int
	layout microkernel.Layout
	packed []byte
}

// copied returns the tables that are not also the head.
func copied(m *model.Model) (list []*gguf.Tensor) {
	if m.Embed != nil && !m.Tied {
		list = append(list, m.Embed)
	}
	if t := inputTable(m); t != nil {
		list = append(list, t)
	}
	return list
}

// inputTable returns the table of the layers' own inputs, or nil.
func inputTable(m *model.Model) *gguf.Tensor {
	for i := range m.Ops {
		if t := m.Ops[i].Table; t != nil {
			return t.Tensor
		}
	}
	return nil
}

// tableBytes returns the size of the copied tables.
func tableBytes(m *model.Model) (bytes int) {
	for _, t := range copied(m) {
		bytes += len(t.Data)
	}
	return bytes
}

// findTables sets Tokens and Inputs.
func (w *Weights) findTables(p *tp.Shards) {
	m := p.Whole
	if m.Embed == nil {
		return
	}
	w.Tokens = Table{typ: m.Embed.Type, width: m.Embed.Dims[0]}
	at := w.ranks[0].table
	for _, t := range copied(m) {
		e := Table{typ: t.Type, width: t.Dims[0], rows: at, bytes: len(t.Data)}
		if at = unsafe.Add(at, e.bytes); t == m.Embed {
			w.Tokens = e
		} else {
			w.Inputs = e
		}
	}
	if !m.Tied {
		return
	}
	head := slices.IndexFunc(m.Weights, func(w model.Weight) bool { return w.Role == "head" })
	for r := range p.List {
		if packed := w.At(r, head); packed != nil {
			w.Tokens.heads = append(w.Tokens.heads, headRows{
				first: p.List[r].Model.Weights[head].Row, layout: packed.Layout,
				packed: unsafe.Slice((*byte)(packed.Data), packed.Layout.Bytes()),
			})
		}
	}
}

// Row writes a row of the table as float32.
func (e *Table) Row(dst []float32, i int) error {
	if e.rows != nil {
		size := e.typ.RowBytes(e.width)
		return gguf.Dequantize(dst, e.typ, unsafe.Slice((*byte)(e.rows), e.bytes)[i*size:][:size])
	}
	for k := range e.heads {
		if h := &e.heads[k]; i >= h.first && i-h.first < h.layout.N {
			return microkernel.Unpack(dst, h.packed, h.layout, i-h.first, 0, h.layout.K)
		}
	}
	panic("load: no rank holds a row of the table") // the parts cover the vocabulary
}
