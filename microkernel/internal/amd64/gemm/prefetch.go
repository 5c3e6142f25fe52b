package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// prefetcher is how a tile function asks for weights before their time, in one of two ways.
//
// Prefetch: at a distance ahead of the use, into the second-level cache, and again nearBytes before
// the use, into the first. Where fewer sub-blocks are left than the distance, what is ahead is not
// behind this block of weights in memory but the block that is multiplied next: the function jumps
// there.
//
// Spread: where several row tiles pass over the same block, only the first pass waits for memory
// and the memory waits during the others. All of the next block is asked for while all row tiles
// pass over this one, a line at every period-th place, so that memory and arithmetic work at the
// same time, and again askAgain lines later.
//
// Both ask twice because a CPU drops what it is asked for while it has as many reads under way as
// it can: where multiplying takes less time than reading, lines are asked for faster than they
// come.
type prefetcher struct {
	pfBase []asm.Reg // like bBase
	tick   asm.Reg   // Spread only
}

// askAgain is how many lines of a panel later a spread prefetch asks for a line again: long enough
// for reads to end, and soon enough for the line to come before it is used. Measured from 1 to 64,
// 4 to 12 are best and 24 are too many. What lies before a block is, where k goes on, the end of
// the block before it, and in the cache otherwise.
const askAgain = 8

// nearBytes is the distance of the second request. Kernels that prefetch no farther ahead make one
// request only, into the first-level cache.
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

// startPrefetch sets the pointers for a row tile whose panel pointers are set.
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

// stopPrefetch keeps for the next row tile how far a spread prefetch has come.
func (e *emitter) stopPrefetch() {
	if e.s.Spread {
		var t kernel.TileArgs
		e.Mov(e.arg(unsafe.Offsetof(t.NextB)), e.pfBase[0])
		e.Mov(e.arg(unsafe.Offsetof(t.Countdown)), e.tick)
	}
}

// mainLoop runs body once for each iteration. With a prefetch distance, the pointers jump to the
// next block on the way.
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

// prefetch stands where the bytes [from, to) of each panel's present sub-block are used.
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

// spreadLine asks for a line of each panel of the next block when its time has come.
func (e *emitter) spreadLine() {
	wait := e.NewLabel()
	e.Dec(e.tick)
	e.Jcc(asm.NotZero, wait)
	e.Uncounted(e.askForLine)
	e.Bind(wait)
}

// askForLine asks for the next line of each panel of the next block, and for one before it again.
func (e *emitter) askForLine() {
	var t kernel.TileArgs
	for p := range e.s.NR / qtype.PanelWidth {
		e.Prefetch(asm.T1, strided(e.pfBase, rBS, p, 0))
		e.Prefetch(asm.T1, strided(e.pfBase, rBS, p, -64*askAgain))
	}
	e.advance(e.pfBase, 64)
	e.Mov(e.tick, e.arg(unsafe.Offsetof(t.Period)))
}
