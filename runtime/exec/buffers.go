package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// Buffers are the activations of one forward: a row per token, off the Go heap, allocated once. Prefill and decode
// share them, since a forward is one or the other. Rows are strided so that equal columns of neighbouring rows do not
// fall into one cache set.
type Buffers struct {
	memory    *mem.Buffer
	base      [model.NumBufs]unsafe.Pointer
	stride    [model.NumBufs]int // float32 elements between rows
	rotations unsafe.Pointer     // [rows][headDim]float32: cosines, then sines, of each row's position
	quant     quantRows
	rows      int
	logitRows int
}

// quantRows holds activations rounded to int8 in blocks of 32, rows of microkernel.ActQ8 blocks (compute path int8).
type quantRows struct {
	base   unsafe.Pointer
	stride int // bytes between rows
}

const cacheLine = 64

// paddedStride rounds a row up to whole cache lines and keeps it off multiples of 1 KiB.
func paddedStride(width int) int {
	const perLine = cacheLine / 4
	s := (width + perLine - 1) / perLine * perLine
	if s%(1024/4) == 0 {
		s += perLine
	}
	return s
}

// NewBuffers allocates activations for forwards of at most rows tokens of which at most logitRows want logits.
// maxQuantK is the longest row that an int8 weight reads, 0 where there is none.
func NewBuffers(m *model.Model, rows, logitRows, maxQuantK int) (*Buffers, error) {
	b := &Buffers{rows: rows, logitRows: logitRows}
	var total int
	var offset [model.NumBufs]int
	reserve := func(bytes int) int {
		at := total
		total += (bytes + cacheLine - 1) / cacheLine * cacheLine
		return at
	}
	for i := range model.NumBufs {
		b.stride[i] = paddedStride(m.Width(i))
		n := rows
		if i == model.BufLogits {
			n = logitRows
		}
		offset[i] = reserve(4 * n * b.stride[i])
	}
	rotations := reserve(4 * rows * m.Dims.HeadDim)
	b.quant.stride = 4 * paddedStride(microkernel.ActQ8RowBytes(maxQuantK)/4)
	quant := reserve(rows * b.quant.stride)

	memory, err := mem.Alloc(total, mem.Options{Node: mem.AnyNode, Huge: true})
	if err != nil {
		return nil, err
	}
	b.memory = memory
	at := func(off int) unsafe.Pointer { return unsafe.Add(memory.Pointer(), off) }
	for i := range model.NumBufs {
		b.base[i] = at(offset[i])
	}
	b.rotations = at(rotations)
	b.quant.base = at(quant)
	return b, nil
}

// Free returns the memory; no forward may run then or afterwards.
func (b *Buffers) Free() error { return b.memory.Free() }

// Bytes is the size of all activations.
func (b *Buffers) Bytes() int { return b.memory.Len() }

// row points at the first element of a row.
func (b *Buffers) row(buf model.Buf, r int) *float32 {
	return (*float32)(unsafe.Add(b.base[buf], 4*r*b.stride[buf]))
}

// rotation points at the cosines and sines of a row's position.
func (b *Buffers) rotation(r, headDim int) *float32 {
	return (*float32)(unsafe.Add(b.rotations, 4*r*headDim))
}

// block points at the block of row r that begins at element k.
func (q *quantRows) block(r, k int) unsafe.Pointer {
	return unsafe.Add(q.base, r*q.stride+microkernel.ActQ8RowBytes(k))
}

func addElems(p *float32, n int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n)) }
