package vec

import (
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// Tiling. tileGroup tiles of rows process the blocks interleaved, so that keys and values come
// from the L2 cache for all tiles but the first. From wideTiles tiles, a half-precision block is
// first dequantized to float32, which costs a seventh of a tile's time. For a dot product, blocks
// are opened from pairTiles tiles: pairs of bfloat16 cost as much as a tile. Fewer tiles get
// callBlocks blocks per call, which lasts about 100 microseconds at most.
const (
	tileGroup  = 12
	wideTiles  = 3
	pairTiles  = 2
	callBlocks = 16
	pairBlocks = 4 // are opened at a time
)

// attentionGroup is a group of tiles of a job. Tile i has the rows starting at i*rows/tiles, so
// that tiles differ by at most one row.
type attentionGroup struct {
	a                         *Attention
	job                       *AttentionJob
	scratch                   unsafe.Pointer
	rows, tiles, first, count int
}

// tile returns the rows of tile i of the group and the addresses of its queries and its state.
func (g *attentionGroup) tile(i int) (lo, hi int, q, state unsafe.Pointer) {
	lo, hi = g.span(i)
	q = unsafe.Add(g.scratch, g.a.scratch.tiles+i*g.a.scratch.tile)
	return lo, hi, q, unsafe.Add(q, g.a.scratch.queries)
}

// span returns the rows of tile i.
func (g *attentionGroup) span(i int) (lo, hi int) {
	return (g.first + i) * g.rows / g.tiles, (g.first + i + 1) * g.rows / g.tiles
}

// sees returns the end of the positions that row r of the job sees.
func (g *attentionGroup) sees(r int) int { return g.job.sees(r / g.job.Group) }

// skips returns the number of positions before the first one that row r sees.
func (g *attentionGroup) skips(r int) int { return g.job.skips(r / g.job.Group) }

// blocksOf returns the range of blocks that the rows of tile i see: [from, to).
func (g *attentionGroup) blocksOf(i int) (from, to int) {
	lo, hi := g.span(i)
	return g.skips(lo) / KVBlock, (g.sees(hi-1) + KVBlock - 1) / KVBlock
}

func (g *attentionGroup) run() {
	for i := range g.count {
		g.begin(i)
	}
	from, _ := g.blocksOf(0)
	_, total := g.blocksOf(g.count - 1)
	if g.a.wide != nil && g.count >= g.a.openFrom() {
		g.opened(from, total)
	} else {
		g.direct(from, total)
	}
	for i := range g.count {
		g.finish(i)
	}
}

// direct runs the tiles over the blocks as they are cached.
func (g *attentionGroup) direct(from, total int) {
	for ; from < total; from += callBlocks {
		for i := range g.count {
			lo, hi := g.blocksOf(i)
			lo, hi = max(lo, from), min(hi, from+callBlocks)
			if n := hi - lo; n > 0 {
				g.blocks(g.a.code, i, kernel.AttentionArgs{
					KV: g.job.KV, Pitch: g.job.Pitch, Table: ptr(at(g.job.Table, lo)), Blocks: n,
					Last: ptr(at(g.job.Table, total-1)), After: g.job.after(total),
				})
			}
		}
	}
}

// openTable holds the ids of blocks that are opened together.
var openTable = [pairBlocks]int32{0, 1, 2, 3}

// opened opens some blocks at a time and runs all tiles over them.
func (g *attentionGroup) opened(from, total int) {
	sizes := &g.a.scratch
	blocks := unsafe.Add(g.scratch, sizes.tiles+tileGroup*sizes.tile)
	_, last := g.span(g.count - 1)
	cached := func(b int) unsafe.Pointer { return unsafe.Add(g.job.KV, int(*at(g.job.Table, b))*g.job.Pitch) }
	for ; from < total; from += sizes.together {
		end := min(total, from+sizes.together)
		for b := from; b < end; b++ {
			seen := min(KVBlock, g.sees(last-1)-b*KVBlock)
			g.a.openBlock(unsafe.Add(blocks, (b-from)*sizes.opened), cached(b), cached(min(b+1, total-1)), g.scratch,
				seen)
		}
		for i := range g.count {
			lo, hi := g.blocksOf(i)
			if lo, hi = max(lo, from), min(hi, end); lo < hi {
				g.blocks(g.a.wide, i, kernel.AttentionArgs{KV: blocks, Pitch: sizes.opened,
					Table: ptr(&openTable[lo-from]), Last: ptr(&openTable[hi-1-from]), After: blocks, Blocks: hi - lo})
			}
		}
	}
}

// begin gathers the queries of a tile and resets its state.
func (g *attentionGroup) begin(i int) {
	g.gather(i)
	lo, hi, _, state := g.tile(i)
	from, _ := g.blocksOf(i)
	g.reset(state, lo, hi, from, true)
}

// gather copies or rounds the queries of a tile to consecutive memory.
func (g *attentionGroup) gather(i int) {
	lo, hi, q, _ := g.tile(i)
	dim := g.a.layout.HeadDim
	for r := lo; r < hi; r++ {
		src := at(g.job.Q, r/g.job.Group*g.job.QStride+r%g.job.Group*dim)
		if g.a.form.Dot != AttendF32 {
			g.a.quantizeQuery(unsafe.Add(q, (r-lo)*g.a.scratch.query), src)
			continue
		}
		copy(vecOf(at((*float32)(q), (r-lo)*dim), dim), vecOf(src, dim))
	}
}

// reset initializes a state for the rows [lo, hi) and the blocks starting at number `from`. The
// first state of a row starts with its head's sink.
func (g *attentionGroup) reset(state unsafe.Pointer, lo, hi, from int, first bool) {
	clear(vecOf((*byte)(state), g.a.kernel(hi-lo).StateBytes()))
	_, maxima, sums := stateFields(state)
	left, skip := (*int32)(unsafe.Add(state, kernel.StateLeft)), (*int32)(unsafe.Add(state, kernel.StateSkip))
	for r := lo; r < hi; r++ {
		*at(left, r-lo) = int32(g.sees(r) - from*KVBlock)
		*at(skip, r-lo) = int32(g.skips(r) - from*KVBlock)
		*at(maxima, r-lo) = negInf
		if first && g.job.Sinks != nil {
			*at(maxima, r-lo), *at(sums, r-lo) = *at(g.job.Sinks, r%g.job.Group), 1
		}
	}
}

// blocks runs tile i over the blocks that args names.
func (g *attentionGroup) blocks(code []jit.Func, i int, args kernel.AttentionArgs) {
	lo, hi, q, state := g.tile(i)
	args.Q, args.State, args.Scratch = q, state, g.scratch
	g.job.scales(&args)
	code[hi-lo-1].Call(unsafe.Pointer(&args))
}

// finish writes the outputs of a tile, divided by their sums.
func (g *attentionGroup) finish(i int) {
	lo, hi, _, state := g.tile(i)
	out, _, sums := stateFields(state)
	g.finishFrom(lo, hi, out, sums)
}

// finishFrom is finish for the rows [lo, hi) with consecutive outputs and sums. It handles the
// heads of one token at a time.
func (g *attentionGroup) finishFrom(lo, hi int, out, sums *float32) {
	dim, padded := g.a.layout.HeadDim, g.a.layout.paddedDim()
	for r := lo; r < hi; {
		head := r % g.job.Group
		n := min(g.job.Group-head, hi-r)
		dst := at(g.job.Out, r/g.job.Group*g.job.OutStride+head*dim)
		g.a.vec.finishAttention(dst, dim, at(out, (r-lo)*padded), padded, at(sums, r-lo), n, dim)
		r += n
	}
}
