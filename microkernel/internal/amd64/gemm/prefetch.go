package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// prefetcher emits software prefetch in one of two ways.
//
// Prefetch: at a distance ahead of the use into the second-level cache, and again nearBytes before
// the use into the first. When fewer sub-blocks remain than the distance, the following data is
// not the continuation of this block in memory but the block that is multiplied next, and the
// pointers jump there.
//
// Spread: if several row tiles pass over the same block, only the first pass waits for memory, and
// the memory is idle during the others. All of the next block is requested while all row tiles
// pass over this one, a line at every period-th place, so that memory and arithmetic work at the
// same time, and again repeatLines lines later.
//
// Both request a line twice because a CPU drops prefetches while it has as many reads in flight as
// it supports, and where multiplying is faster than reading, lines are requested faster than they
// arrive.
type prefetcher struct {
	pfBase []asm.Reg // like bBase
	tick   asm.Reg   // Spread only
}

// repeatLines is the number of lines of a panel after which a spread prefetch requests a line
// again: late enough for reads to end, and early enough for the line to arrive before use. The
// data before a block is either the end of the previous block of k or cached.
const repeatLines = 8

// nearBytes is the distance of the second request. Kernels with a shorter prefetch distance make
// one request only, into the first-level cache.
const nearBytes = kernel.MaxSinglePrefetch

func (e *emitter) newPrefetcher() (f prefetcher) {
	if !e.s.Prefetches() {
		return f
	}
	for range (e.s.NR/qtype.PanelWidth + pointersEach - 1) / pointersEach {
		f.pfBase = append(f.pfBase, e.pointer())
	}
	if e.s.Spread {
		f.tick = rBS // which one panel does not need
		if e.s.NR > qtype.PanelWidth {
			f.tick = e.pointer()
		}
	}
	return f
}

// startPrefetch sets the prefetch pointers of a row tile, after its panel pointers.
func (e *emitter) startPrefetch() {
	var t kernel.TileArgs
	switch {
	case e.s.Spread:
		e.loadPointers(e.pfBase, rBS, unsafe.Offsetof(t.NextB), unsafe.Offsetof(t.BStride))
		e.Mov(e.tick, e.arg(unsafe.Offsetof(t.Countdown)))
	case e.s.Prefetch > 0:
		far := e.s.IterationsAhead() * e.s.B.PanelOffset(e.s.Iteration())
		for i, p := range e.pfBase {
			e.Lea(p, asm.At(e.bBase[i], far))
		}
	}
}

// stopPrefetch stores the progress of a spread prefetch for the next row tile.
func (e *emitter) stopPrefetch() {
	if e.s.Spread {
		var t kernel.TileArgs
		e.Mov(e.arg(unsafe.Offsetof(t.NextB)), e.pfBase[0])
		e.Mov(e.arg(unsafe.Offsetof(t.Countdown)), e.tick)
	}
}

// mainLoop runs body once per iteration. With a prefetch distance, the prefetch pointers jump to
// the next block when they reach the end of this one.
func (e *emitter) mainLoop(body func()) {
	var t kernel.TileArgs
	counted := func() { e.Counted(body) }
	if e.s.Prefetch == 0 {
		e.loop(unsafe.Offsetof(t.Main), counted)
		return
	}
	left := e.arg(unsafe.Offsetof(t.Left))
	top, jump := e.NewLabel(), e.NewLabel()
	e.Mov(rCount, e.arg(unsafe.Offsetof(t.InNext)))
	e.Mov(left, rCount)
	e.Mov(rCount, e.arg(unsafe.Offsetof(t.InBlock)))
	e.Test(rCount, rCount)
	e.Jcc(asm.Zero, jump)
	e.Align(32)
	e.Bind(top)
	counted()
	e.Dec(rCount)
	e.Jcc(asm.NotZero, top)
	e.Bind(jump)
	for _, p := range e.pfBase {
		e.Add(p, e.arg(unsafe.Offsetof(t.Jump)))
	}
	e.Mov(rCount, left)
	e.Xor(rLDA, rLDA)
	e.Mov(left, rLDA)
	e.Mov(rLDA, e.arg(unsafe.Offsetof(t.LDA)))
	e.Test(rCount, rCount)
	e.Jcc(asm.NotZero, top)
}

// prefetch emits the prefetches at the place where the bytes [from, to) of each panel's current
// sub-block are used.
func (e *emitter) prefetch(from, to int) {
	if !e.s.Prefetches() {
		return
	}
	for at := (from + 63) &^ 63; at < to; at += 64 {
		if e.s.Spread {
			e.spreadLine()
			continue
		}
		for p := range e.s.NR / qtype.PanelWidth {
			if e.s.Prefetch <= nearBytes {
				e.Prefetch(asm.T0, strided(e.pfBase, rBS, p, at))
				continue
			}
			e.Prefetch(asm.T1, strided(e.pfBase, rBS, p, at))
			e.Prefetch(asm.T0, strided(e.bBase, rBS, p, at+nearBytes))
		}
	}
}

// spreadLine requests a line of each panel of the next block every period-th time.
func (e *emitter) spreadLine() {
	wait := e.NewLabel()
	e.Dec(e.tick)
	e.Jcc(asm.NotZero, wait)
	e.Uncounted(e.requestLine)
	e.Bind(wait)
}

// requestLine requests the next line of each panel of the next block, and an earlier one again.
func (e *emitter) requestLine() {
	var t kernel.TileArgs
	for p := range e.s.NR / qtype.PanelWidth {
		e.Prefetch(asm.T1, strided(e.pfBase, rBS, p, 0))
		e.Prefetch(asm.T1, strided(e.pfBase, rBS, p, -64*repeatLines))
	}
	e.advance(e.pfBase, 64)
	e.Mov(e.tick, e.arg(unsafe.Offsetof(t.Period)))
}
