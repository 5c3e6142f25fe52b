package vec

import (
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// loadPairs generates the kernels that read opened blocks, pairs of bfloat16 or lines of integers,
// and what opens a block.
func (a *Attention) loadPairs(isa kernel.ISA) error {
	k := a.kernel(0)
	k.Opened = true
	var err error
	if a.wide, err = loadAttention(isa, k); err != nil {
		return err
	}
	target := isa.Target().Attention
	code, err := target.OpenBlock(a.kernel(target.Rows(k.Dot)))
	if err != nil {
		return err
	}
	pairs, err := jit.Load(code)
	if err != nil {
		return err
	}
	a.pairs = pairs[0]
	return nil
}

// openBlock leaves a block at dst as the wide kernels read it, of which they see so many positions;
// next is the block after it. No call through a value of a function: what it gets would escape.
func (a *Attention) openBlock(dst, block, next, scratch unsafe.Pointer, seen int) {
	if !a.pairs.Valid() {
		a.vec.widenPair(a.layout, dst, block)
		return
	}
	args := kernel.AttentionArgs{KV: block, State: dst, Scratch: scratch, Blocks: seen, After: next}
	a.pairs.Call(unsafe.Pointer(&args))
}

// roundQuery rounds a query vector to what the dot product multiplies: to blocks of integers, or to
// bfloat16 with zeros up to whole steps.
func (a *Attention) roundQuery(dst unsafe.Pointer, src *float32) {
	dim := a.layout.HeadDim
	if a.form.Dot == AttendDPBUSD {
		a.vec.quantizeRowQ8(src, dim, dst)
		return
	}
	a.vec.roundQueryBF16(src, dim, dst)
	clear(vecOf((*byte)(unsafe.Add(dst, 2*dim)), a.room.query-2*dim))
}
