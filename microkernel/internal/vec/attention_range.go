package vec

import (
	"unsafe"

	"sandwich/microkernel/internal/kernel"
)

// StateBytes returns the size of one state of a job of `rows` rows (Tokens times Group).
func (a *Attention) StateBytes(rows int) int {
	tiles := a.tilesOf(rows)
	return tiles * a.tileStateBytes((rows+tiles-1)/tiles)
}

// SharesStates reports whether two kernels of one layout and form use the same state layout for a
// job of `rows` rows, so that one may continue from the state of the other.
func (a *Attention) SharesStates(o *Attention, rows int) bool {
	return a.tilesOf(rows) == o.tilesOf(rows) && a.StateBytes(rows) == o.StateBytes(rows)
}

// tileStateBytes returns the size of the state of a tile of up to `rows` rows.
func (a *Attention) tileStateBytes(rows int) int {
	return (a.kernel(rows).StateBytes() + 63) &^ 63
}

// tilesOf returns the number of register tiles for the rows of a job.
func (a *Attention) tilesOf(rows int) int { return (rows + a.maxRows() - 1) / a.maxRows() }

// maxRows returns the rows of the largest tile.
func (a *Attention) maxRows() int {
	if a.code == nil {
		return kernel.StateRows
	}
	return len(a.code)
}

// state returns the state of tile i of the first range (slot 0) or of a later block.
func (a *Attention) state(job *AttentionJob, states *AttentionStates, slot, i int) unsafe.Pointer {
	rows := job.Tokens * job.Group
	tiles := a.tilesOf(rows)
	return unsafe.Add(states.Memory, slot*a.StateBytes(rows)+i*a.tileStateBytes((rows+tiles-1)/tiles))
}

// RunRange computes the blocks [from, to) of the job: all of the first range, or any range after
// it.
func (a *Attention) RunRange(job *AttentionJob, states *AttentionStates, from, to int, scratch unsafe.Pointer) {
	rows := job.Tokens * job.Group
	tiles := a.tilesOf(rows)
	scratch = unsafe.Add(scratch, -uintptr(scratch)&63)
	for i := range tiles {
		g := attentionGroup{a: a, job: job, scratch: scratch, rows: rows, tiles: tiles, first: i, count: 1}
		if a.code != nil {
			g.gather(0)
		}
		if from < states.First {
			g.ofRange(a.state(job, states, 0, i), from, to, to, true)
			continue
		}
		for b := from; b < to; b++ {
			g.ofRange(a.state(job, states, 1+b-states.First, i), b, b+1, to, false)
		}
	}
}

// ofRange computes the blocks [from, to) of the group's single tile into a state. The blocks
// before number `end` follow each other in this call.
func (g *attentionGroup) ofRange(state unsafe.Pointer, from, to, end int, first bool) {
	lo, hi := g.span(0)
	g.reset(state, lo, hi, from, first)
	if g.a.code == nil {
		refRange(g.a.layout, g.a.form.Dot, g.job, state, lo, hi, from, to)
		return
	}
	_, _, q, _ := g.tile(0)
	last := ptr(at(g.job.Table, end-1))
	for ; from < to; from += callBlocks {
		args := kernel.AttentionArgs{Q: q, State: state, Scratch: g.scratch,
			KV: g.job.KV, Pitch: g.job.Pitch, Table: ptr(at(g.job.Table, from)), Blocks: min(callBlocks, to-from),
			Last: last, After: g.job.after(end)}
		g.job.scales(&args)
		g.a.code[hi-lo-1].Call(unsafe.Pointer(&args))
	}
}

// MergeRanges writes the job's output from the states of all its blocks.
func (a *Attention) MergeRanges(job *AttentionJob, states *AttentionStates) {
	rows := job.Tokens * job.Group
	tiles := a.tilesOf(rows)
	dim := a.layout.paddedDim()
	for i := range tiles {
		g := attentionGroup{a: a, job: job, rows: rows, tiles: tiles, first: i, count: 1}
		lo, hi := g.span(0)
		o, m, s := stateFields(a.state(job, states, 0, i))
		_, end := job.Blocks()
		for b := states.First; b < end; b++ {
			ob, mb, sb := stateFields(a.state(job, states, 1+b-states.First, i))
			a.vec.mergeBlock(o, dim, m, s, ob, dim, mb, sb, hi-lo, dim)
		}
		g.finishFrom(lo, hi, o, s)
	}
}
