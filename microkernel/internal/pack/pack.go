// Package pack packs rows of weights in file layout into the panels that kernels read.
//
// The package must not import an emitter (amd64, arm64).
package pack

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// bufferBytes is the size of the buffer in which part of a panel is packed before it is copied.
// The values of a row are stored to all lines of a block; in uncached memory every store would
// wait, while a copy writes line after line. The buffer and the rows fit the first-level cache.
const bufferBytes = 8 << 10

// Packer packs the rows of a weight type. It is not safe for concurrent use.
type Packer struct {
	d      *qtype.Desc
	blocks *blocks // nil: plain floats
	buffer [bufferBytes]byte
	rows   [columnBytes]byte
}

// idle holds unused packers. Their buffers are too large to allocate for every part of a load, and
// steps are called through function values, which moves them to the heap.
var idle = sync.Pool{New: func() any { return new(Packer) }}

// For returns a packer of a type; return it with Done.
func For(d *qtype.Desc) *Packer {
	p := idle.Get().(*Packer)
	if p.d == d {
		return p
	}
	p.d, p.blocks = d, nil
	if d.Float == qtype.None {
		p.blocks = newBlocks(d)
	}
	return p
}

// Done returns a packer for reuse.
func (p *Packer) Done() { idle.Put(p) }

// Panel packs the rows of up to PanelWidth columns, rowStride bytes apart and k elements long,
// into a panel of the layout that microkernel.Layout documents. It writes all of the panel up to
// k.
func (p *Packer) Panel(panel, src []byte, rowStride, columns, k int) {
	if done := p.transposed(panel, src, rowStride, columns, k); done > 0 {
		size := p.d.Bytes / p.d.Block
		panel, src, k = panel[done*size*qtype.PanelWidth:], src[done*size:], k-done
	}
	block := p.d.PanelBytes() // of d.Block elements of all columns
	blocks := len(p.buffer) / block
	if blocks == 0 { // no current type
		p.pack(panel, src, rowStride, columns, k)
		return
	}
	for k0, step := 0, blocks*p.d.Block; k0 < k; k0 += step {
		part := p.buffer[:min(blocks*block, len(panel))]
		p.pack(part, src[k0/p.d.Block*p.d.Bytes:], rowStride, columns, min(step, k-k0))
		panel = panel[copy(panel, part):]
	}
}

// transposed packs the first elements of each row of plain floats by generated code, and returns
// their number.
func (p *Packer) transposed(panel, src []byte, rowStride, columns, k int) int {
	if columns < qtype.PanelWidth {
		return 0
	}
	switch p.d.Float {
	case qtype.Single:
		return p.transpose(kernel.TransposeWords, panel, src, rowStride, k)
	case qtype.Half:
		return 2 * p.transpose(kernel.TransposeHalves, panel, src, rowStride, k/2)
	case qtype.Brain:
		return 2 * p.transpose(kernel.TransposeWords, panel, src, rowStride, k/2)
	}
	return 0
}

// pack is Panel for a panel that fits the buffer.
func (p *Packer) pack(panel, src []byte, rowStride, columns, k int) {
	switch p.d.Float {
	case qtype.Single:
		packWords(panel, src, rowStride, columns, k)
	case qtype.Half:
		packElements[uint16](panel, src, rowStride, columns, k)
	case qtype.Brain:
		packPairs(panel, src, rowStride, columns, k)
	default:
		p.blocks.pack(panel, src, rowStride, columns, k)
	}
}

// packElements transposes rows of plain elements: panel[k][c] = src[c][k]. It moves elements
// whole, which needs no alignment where kernels are generated; elsewhere tensors are aligned.
func packElements[T uint16 | uint32](panel, src []byte, rowStride, columns, k int) {
	size := int(unsafe.Sizeof(T(0)))
	if columns < qtype.PanelWidth {
		clear(panel)
	}
	for c := range columns {
		s, d := src[c*rowStride:][:size*k], panel[size*c:]
		for i := 0; i < len(s); i += size {
			_ = d[size-1]
			*(*T)(unsafe.Pointer(unsafe.SliceData(d))) = *(*T)(unsafe.Pointer(&s[i]))
			if len(d) > size*qtype.PanelWidth {
				d = d[size*qtype.PanelWidth:]
			}
		}
	}
}

// packWords is packElements for 32-bit words: sixteen elements of a row, a cache line of it, at a
// time.
func packWords(panel, src []byte, rowStride, columns, k int) {
	const strip = 16
	whole := k / strip * strip
	if columns < qtype.PanelWidth {
		clear(panel)
	}
	for k0 := 0; k0 < whole; k0 += strip {
		for c := range columns {
			s, d := src[c*rowStride+4*k0:][:4*strip], panel[line*k0+4*c:][:(strip-1)*line+4]
			put8(d[0*line:1*line+4], binary.LittleEndian.Uint64(s[0:]))
			put8(d[2*line:3*line+4], binary.LittleEndian.Uint64(s[8:]))
			put8(d[4*line:5*line+4], binary.LittleEndian.Uint64(s[16:]))
			put8(d[6*line:7*line+4], binary.LittleEndian.Uint64(s[24:]))
			put8(d[8*line:9*line+4], binary.LittleEndian.Uint64(s[32:]))
			put8(d[10*line:11*line+4], binary.LittleEndian.Uint64(s[40:]))
			put8(d[12*line:13*line+4], binary.LittleEndian.Uint64(s[48:]))
			put8(d[14*line:15*line+4], binary.LittleEndian.Uint64(s[56:]))
		}
	}
	if whole < k {
		packElements[uint32](panel[line*whole:], src[4*whole:], rowStride, columns, k-whole)
	}
}

// packPairs transposes rows of 16-bit elements in pairs: panel[k/2][c] = src[c][k], src[c][k+1].
func packPairs(panel, src []byte, rowStride, columns, k int) {
	if k%2 == 0 {
		packWords(panel, src, rowStride, columns, k/2)
		return
	}
	packWords(panel[:32*(k-1)], src, rowStride, columns, k/2)
	last := panel[32*(k-1):][:64]
	clear(last)
	for c := range columns {
		copy(last[4*c:4*c+2], src[c*rowStride+2*(k-1):])
	}
}
