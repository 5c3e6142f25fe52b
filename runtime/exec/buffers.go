package exec

import (
	"fmt"
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
	routes    routes
	rows      int
	logitRows int
}

// quantRows holds activations rounded to int8 in blocks of 32, rows of microkernel.ActQ8 blocks (compute path int8).
type quantRows struct {
	base   unsafe.Pointer
	stride int // bytes between rows
}

const cacheLine = 64

// QuantRowBytes is the distance in bytes between rows of k activations rounded to int8; k is a multiple of 32.
func QuantRowBytes(k int) int { return 4 * RowStride(microkernel.ActQ8RowBytes(k)/4) }

// RowStride is the distance in elements between rows of float32 activations: whole cache lines, off multiples of 1 KiB. The
// tuner lays its operands out by it too, so that what it times is what serves.
func RowStride(width int) int {
	const perLine = cacheLine / 4
	if width == 0 {
		return 0
	}
	s := (width + perLine - 1) / perLine * perLine
	if s%(1024/4) == 0 {
		s += perLine
	}
	return s
}

// bufferLayout is where each buffer begins in one piece of memory.
type bufferLayout struct {
	offset      [model.NumBufs]int
	stride      [model.NumBufs]int
	rotations   int
	quant       int
	quantStride int
	routes      int
	total       int
}

func (l *bufferLayout) reserve(bytes int) int {
	at := l.total
	l.total += (bytes + cacheLine - 1) / cacheLine * cacheLine
	return at
}

func layOut(m *model.Model, rows, logitRows, maxQuantK int) (l bufferLayout) {
	most := rows // of any buffer that a product reads
	for i := range model.NumBufs {
		l.stride[i] = RowStride(m.Width(i))
		n := m.RowsOf(i, rows)
		most = max(most, n)
		if i == model.BufLogits {
			n = logitRows
		}
		l.offset[i] = l.reserve(4 * n * l.stride[i])
	}
	l.rotations = l.reserve(4 * rows * m.Dims.HeadDim)
	l.quantStride = QuantRowBytes(maxQuantK)
	l.quant = l.reserve(most * l.quantStride)
	l.routes = l.reserve(routeBytes(m.Experts, rows))
	return l
}

// BufferBytes is what NewBuffers will allocate at most.
func BufferBytes(m *model.Model, rows, logitRows int) int64 {
	k := 0
	for i := range m.Weights {
		k = max(k, m.Weights[i].K)
	}
	return int64(layOut(m, rows, logitRows, k).total)
}

// NewBuffers allocates activations for forwards of at most rows tokens of which at most logitRows want logits.
// maxQuantK is the longest row that an int8 weight reads, 0 where there is none.
func NewBuffers(m *model.Model, rows, logitRows, maxQuantK int) (*Buffers, error) {
	l := layOut(m, rows, logitRows, maxQuantK)
	memory, err := mem.Alloc(l.total, mem.Options{Node: mem.AnyNode, Huge: true})
	if err != nil {
		return nil, fmt.Errorf("activations of %d rows: %w", rows, err)
	}
	at := func(off int) unsafe.Pointer { return unsafe.Add(memory.Pointer(), off) }
	b := &Buffers{memory: memory, stride: l.stride, rows: rows, logitRows: logitRows}
	for i := range model.NumBufs {
		b.base[i] = at(l.offset[i])
	}
	b.rotations = at(l.rotations)
	b.quant = quantRows{base: at(l.quant), stride: l.quantStride}
	b.routes = newRoutes(m.Experts, rows, at(l.routes))
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

// rowsOf is a buffer as rows.
func (b *Buffers) rowsOf(buf model.Buf) Rows { return Rows{(*float32)(b.base[buf]), b.stride[buf]} }

// rotation points at the cosines and sines of a row's position.
func (b *Buffers) rotation(r, headDim int) *float32 {
	return (*float32)(unsafe.Add(b.rotations, 4*r*headDim))
}

// block points at the block of row r that begins at element k.
func (q *quantRows) block(r, k int) unsafe.Pointer {
	return unsafe.Add(q.base, r*q.stride+microkernel.ActQ8RowBytes(k))
}

func addElems(p *float32, n int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n)) }
