package exec

import (
	"cmp"
	"math"
	"slices"

	"sandwich/runtime/kvcache"
)

// attentionTile is the most tokens of one sequence whose attention is one unit of work: enough for
// a block of keys to serve many queries while it is cached. Where that makes few units, tiles get
// smaller down to leastTileRows query rows. Results do not depend on it.
const (
	attentionTile = 64
	leastTileRows = 48
)

// A range of a split tile has at least leastRange blocks. Tiles are split only where there are no
// more than fewUnits of them (times KV heads) for each worker: beyond that the units are small
// enough beside the whole.
const (
	leastRange = 4
	fewUnits   = 8
)

// tile is n consecutive rows of one stretch.
type tile struct {
	of  *stretch
	row int // first row in the batch
	n   int
	pos int // position of the first row
}

// blocks are those that the tile's tokens see, of which each sees `window` positions at most, or
// all where it is 0.
func (t *tile) blocks(window int) (from, to int) {
	end := t.pos + t.n
	switch until := t.of.until; {
	case until > 0 && window > 0:
		from, end = max(0, t.pos-window/2)/kvcache.BlockTokens, min(until, end+window/2)
	case until > 0:
		end = until
	case window > 0:
		from = max(0, t.pos+1-window) / kvcache.BlockTokens
	}
	return from, kvcache.BlocksFor(end)
}

// kvRange is the blocks [from, to) of a tile: one unit of attention for each KV head.
type kvRange struct {
	tile, from, to int
	split          int // which of the splits; -1 where the range is the whole tile
}

// split is a tile of one token whose blocks several workers compute.
type split struct {
	first  int   // the first block behind its first range
	ranges int32 // of each KV head
	at     int   // where its states begin, counted in those of all KV heads
	states int   // of each KV head
}

// cutter turns what a store's layers see of a batch into units for a team of workers.
type cutter struct {
	team    int
	kvHeads int
	group   int
	window  int // positions that a token sees, 0 for all
	state   int // bytes of a state of `group` rows
	room    int // states that there is memory for, counted for all KV heads

	tiles  []tile
	ranges []kvRange
	splits []split
}

// reserve gives the lists of a small batch memory side by side: behind a prefill all of it is out
// of the caches, and each place of its own would be waited for.
func (c *cut) reserve() {
	m := new(struct {
		stretches [2]stretch
		tiles     [2]tile
		ranges    [4]kvRange
	})
	c.view.stretches, c.tiles, c.ranges = m.stretches[:0], m.tiles[:0], m.ranges[:0]
}

// mostSplits is how many tiles may be split at once.
func (c *cutter) mostSplits() int { return max(1, fewUnits*c.team/c.kvHeads) }

// lay cuts a batch.
func (c *cutter) lay(seen []stretch) {
	c.tiles = cutTiles(c.tiles, seen, c.tileTokens(seen))
	c.ranges, c.splits = c.ranges[:0], c.splits[:0]
	most, used := c.rangeBlocks(), 0
	for i := range c.tiles {
		t := &c.tiles[i]
		from, to := t.blocks(c.window)
		blocks := to - from
		n := (blocks + most - 1) / most
		first := (blocks + n - 1) / n
		if n == 1 || t.n > 1 || used+1+blocks-first > c.room {
			c.ranges = append(c.ranges, kvRange{tile: i, from: from, to: to, split: -1})
			continue
		}
		for k := range n {
			c.ranges = append(c.ranges, kvRange{tile: i, from: from + rangeEdge(blocks, n, k),
				to: from + rangeEdge(blocks, n, k+1), split: len(c.splits)})
		}
		c.splits = append(c.splits, split{first: from + first, ranges: int32(n), at: used, states: 1 + blocks - first})
		used += 1 + blocks - first
	}
	// The longest are handed out first. Sorting allocates nothing, and the order of equal ranges
	// does not matter.
	slices.SortFunc(c.ranges, func(a, b kvRange) int { return cmp.Compare(b.work(c.tiles), a.work(c.tiles)) })
}

// work is what a range costs, in blocks times tokens.
func (p *kvRange) work(tiles []tile) int { return (p.to - p.from) * tiles[p.tile].n }

// rangeEdge is where range k of n begins: ranges differ by one block at most, the first is the
// longest.
func rangeEdge(blocks, n, k int) int { return (k*blocks + n - 1) / n }

// tileTokens is the most tokens of a tile, such that the team has a few units each.
func (c *cutter) tileTokens(seen []stretch) int {
	const unitsEach = 4
	rows := 0
	for i := range seen {
		rows += seen[i].n
	}
	fair := rows * c.kvHeads / (unitsEach * c.team)
	return max(1, min(attentionTile, max(fair, (leastTileRows+c.group-1)/c.group)))
}

// cutTiles splits stretches into tiles of at most the given number of tokens.
func cutTiles(dst []tile, seen []stretch, most int) []tile {
	dst = dst[:0]
	for i := range seen {
		s := &seen[i]
		for done := 0; done < s.n; done += most {
			dst = append(dst, tile{of: s, row: s.row + done, n: min(most, s.n-done), pos: s.pos + done})
		}
	}
	return dst
}

// rangeBlocks is the most blocks of a range: those of the longest tile, unless cutting tiles lets
// the team end sooner. Handed out one by one, ranges of at most b blocks, n of them and `all`
// blocks together, are done after ceil(n/team)*b, or (all-b)/team + b, whichever is less; every cut
// costs a little for the states it leaves.
func (c *cutter) rangeBlocks() int {
	longest, all := 0, 0
	for i := range c.tiles {
		if c.tiles[i].n > 1 {
			return math.MaxInt32 // prefill
		}
		n := c.blocksOf(i)
		longest = max(longest, n)
		all += n * c.kvHeads
	}
	if c.room == 0 || len(c.tiles) > c.mostSplits() {
		return longest
	}
	best, bestTime := longest, c.endsAfter(longest, all)
	for n := 2; n <= fewUnits*c.team; n++ {
		b := (longest + n - 1) / n
		if b < leastRange {
			break
		}
		if t := c.endsAfter(b, all) * (1.03 + 0.005*float64(n)); t < bestTime {
			best, bestTime = b, t
		}
	}
	return best
}

// blocksOf is how many blocks a tile sees.
func (c *cutter) blocksOf(tile int) int {
	from, to := c.tiles[tile].blocks(c.window)
	return to - from
}

// endsAfter is when the team is done, in blocks, if ranges have at most b.
func (c *cutter) endsAfter(b, all int) float64 {
	n := 0
	for i := range c.tiles {
		n += (c.blocksOf(i) + b - 1) / b * c.kvHeads
	}
	rounds := (n + c.team - 1) / c.team
	return min(float64(rounds*b), float64(all-b)/float64(c.team)+float64(b))
}
