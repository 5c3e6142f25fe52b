package vec

import (
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// loadOpened generates the kernels that read opened blocks (pairs of bfloat16, or lines of
// integers) and the function that opens a block.
func (a *Attention) loadOpened(isa kernel.ISA) error {
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
	a.opener, err = jit.LoadOne(code)
	return err
}

// openBlock converts a block to the layout of the wide kernels at dst; they see the first `seen`
// positions. next is the block after it. It avoids calls through function values, which would move
// its arguments to the heap.
func (a *Attention) openBlock(dst, block, next, scratch unsafe.Pointer, seen int) {
	if !a.opener.Valid() {
		a.vec.widenPair(a.layout, dst, block)
		return
	}
	args := kernel.AttentionArgs{KV: block, State: dst, Scratch: scratch, Blocks: seen, After: next}
	a.opener.Call(unsafe.Pointer(&args))
}

// quantizeQuery rounds a query vector to the operand of the dot product: blocks of integers, or
// bfloat16 padded with zeros to whole steps.
func (a *Attention) quantizeQuery(dst unsafe.Pointer, src *float32) {
	dim := a.layout.HeadDim
	if a.form.Dot == AttendDPBUSD {
		a.vec.quantizeRowQ8(src, dim, dst)
		return
	}
	a.vec.roundQueryBF16(src, dim, dst)
	clear(vecOf((*byte)(unsafe.Add(dst, 2*dim)), a.scratch.query-2*dim))
}
