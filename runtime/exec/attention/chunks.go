package attention

import (
	"cmp"
	"math"
	"slices"

	"sandwich/runtime/kvcache"
)

// Sizes of segments in rows. A segment has enough rows for a block of keys to serve many queries
// while it is cached. With few segments they get smaller, down to minQueryRows query rows.
const (
	maxSegmentRows = 64
	minQueryRows   = 48
)

// A chunk of a split segment has at least minChunk blocks. Segments are split only if there are
// at most fewUnits of them (times KV heads) per worker; otherwise the units are small enough
// already.
const (
	minChunk = 4
	fewUnits = 8
)

// segment is n consecutive rows of one sequence.
type segment struct {
	of  *viewSpan
	row int // first row in the batch
	n   int
	pos int // position of the first row
}

// blocks returns the range of blocks that the rows of the segment see. Each row sees at most
// `window` positions; 0: all.
func (s *segment) blocks(window int) (from, to int) {
	end := s.pos + s.n
	switch until := s.of.until; {
	case until > 0 && window > 0:
		from, end = max(0, s.pos-window/2)/kvcache.BlockTokens, min(until, end+window/2)
	case until > 0:
		end = until
	case window > 0:
		from = max(0, s.pos+1-window) / kvcache.BlockTokens
	}
	return from, kvcache.BlocksFor(end)
}

// chunk is the blocks [from, to) of a segment. It is one unit of work for each KV head.
type chunk struct {
	segment, from, to int
	split             int // index in splits; -1: the chunk is the entire segment
}

// split is a segment of one row whose blocks several workers compute.
type split struct {
	first  int   // first block after its first chunk
	chunks int32 // of each KV head
	at     int   // index of its first state, counting those of all KV heads as one
	states int   // of each KV head
}

// divider divides what the layers of a store see of a batch into chunks for a team of workers.
type divider struct {
	team    int
	kvHeads int
	group   int
	window  int // positions that a row sees; 0: all
	state   int // bytes of a state of `group` rows
	max     int // states that fit the memory, counting those of all KV heads as one

	segments []segment
	chunks   []chunk
	splits   []split
}

// maxSplits returns how many segments may be split at once.
func (d *divider) maxSplits() int { return max(1, fewUnits*d.team/d.kvHeads) }

// divide divides a batch.
func (d *divider) divide(seen []viewSpan) {
	d.segments = divideSpans(d.segments, seen, d.segmentRows(seen))
	d.chunks, d.splits = d.chunks[:0], d.splits[:0]
	limit, used := d.chunkBlocks(), 0
	for i := range d.segments {
		t := &d.segments[i]
		from, to := t.blocks(d.window)
		blocks := to - from
		n := (blocks + limit - 1) / limit
		first := (blocks + n - 1) / n
		if n == 1 || t.n > 1 || used+1+blocks-first > d.max {
			d.chunks = append(d.chunks, chunk{segment: i, from: from, to: to, split: -1})
			continue
		}
		for k := range n {
			d.chunks = append(d.chunks, chunk{segment: i, from: from + chunkEdge(blocks, n, k),
				to: from + chunkEdge(blocks, n, k+1), split: len(d.splits)})
		}
		d.splits = append(d.splits, split{first: from + first, chunks: int32(n), at: used, states: 1 + blocks - first})
		used += 1 + blocks - first
	}
	// The longest are handed out first. The order of equal chunks does not matter.
	slices.SortFunc(d.chunks, func(a, b chunk) int { return cmp.Compare(b.work(d.segments), a.work(d.segments)) })
}

// work returns the cost of a chunk in blocks times rows.
func (p *chunk) work(segments []segment) int { return (p.to - p.from) * segments[p.segment].n }

// chunkEdge returns where chunk k of n begins. Chunks differ by at most one block; the first is the
// longest.
func chunkEdge(blocks, n, k int) int { return (k*blocks + n - 1) / n }

// segmentRows returns the size of segments that gives each worker of the team a few units.
func (d *divider) segmentRows(seen []viewSpan) int {
	const unitsEach = 4
	rows := 0
	for i := range seen {
		rows += seen[i].n
	}
	fair := rows * d.kvHeads / (unitsEach * d.team)
	return max(1, min(maxSegmentRows, max(fair, (minQueryRows+d.group-1)/d.group)))
}

// divideSpans divides spans into segments of at most the given number of rows.
func divideSpans(dst []segment, seen []viewSpan, limit int) []segment {
	dst = dst[:0]
	for i := range seen {
		s := &seen[i]
		for done := 0; done < s.n; done += limit {
			dst = append(dst, segment{of: s, row: s.row + done, n: min(limit, s.n-done), pos: s.pos + done})
		}
	}
	return dst
}

// chunkBlocks returns the size of chunks in blocks: that of the longest segment, unless the team
// ends sooner with split segments. Handed out one by one, chunks of at most b blocks, n of them and
// `all` blocks together, are done after ceil(n/team)*b or (all-b)/team + b, whichever is less. Each
// additional chunk costs a little for its states.
func (d *divider) chunkBlocks() int {
	longest, all := 0, 0
	for i := range d.segments {
		if d.segments[i].n > 1 {
			return math.MaxInt32 // prefill
		}
		n := d.blocksOf(i)
		longest = max(longest, n)
		all += n * d.kvHeads
	}
	if d.max == 0 || len(d.segments) > d.maxSplits() {
		return longest
	}
	best, bestTime := longest, d.endsAfter(longest, all)
	for n := 2; n <= fewUnits*d.team; n++ {
		b := (longest + n - 1) / n
		if b < minChunk {
			break
		}
		if t := d.endsAfter(b, all) * (1.03 + 0.005*float64(n)); t < bestTime {
			best, bestTime = b, t
		}
	}
	return best
}

// blocksOf returns the number of blocks that a segment sees.
func (d *divider) blocksOf(segment int) int {
	from, to := d.segments[segment].blocks(d.window)
	return to - from
}

// endsAfter estimates when the team is done, in blocks, with chunks of at most b blocks.
func (d *divider) endsAfter(b, all int) float64 {
	n := 0
	for i := range d.segments {
		n += (d.blocksOf(i) + b - 1) / b * d.kvHeads
	}
	rounds := (n + d.team - 1) / d.team
	return min(float64(rounds*b), float64(all-b)/float64(d.team)+float64(b))
}
