package attention

import (
	"math/rand/v2"
	"testing"

	"sandwich/runtime/kvcache"
)

// randomSpans returns the spans of a prefill chunk or of a decode batch.
func randomSpans(rng *rand.Rand) (spans []kvcache.Span, rows int) {
	table := make([]kvcache.BlockID, 40)
	for i := range table {
		table[i] = kvcache.BlockID(rng.IntN(1000))
	}
	if rng.IntN(2) == 0 {
		n := 1 + rng.IntN(600)
		return []kvcache.Span{{Rows: n, Pos: rng.IntN(1500), Tables: kvcache.Tables{table}}}, n
	}
	n := 1 + rng.IntN(12)
	for i := range n {
		spans = append(spans, kvcache.Span{Row: i, Rows: 1, Pos: rng.IntN(2000), Tables: kvcache.Tables{table}})
	}
	return spans, n
}

// TestSegments checks that KV segments and segments cover every row once, in order, with its
// position, that a KV segment stays inside the block that the table names, and a segment inside its
// span.
func TestSegments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var inBlocks []kvSegment
	var segments []segment
	for range 2000 {
		spans, rows := randomSpans(rng)
		posOf := func(row int) (*kvcache.Span, int) {
			for i := range spans {
				if s := &spans[i]; row >= s.Row && row < s.Row+s.Rows {
					return s, s.Pos + row - s.Row
				}
			}
			t.Fatalf("row %d is in no span", row)
			return nil, 0
		}
		inBlocks = divideByBlock(inBlocks, spans, 0)
		at := 0
		for _, r := range inBlocks {
			span, pos := posOf(r.row)
			if r.row != at || r.n < 1 || r.pos != pos || r.pos/kvcache.BlockTokens != (r.pos+
				r.n-1)/kvcache.BlockTokens ||
				r.block != span.Tables[0][r.pos/kvcache.BlockTokens] {
				t.Fatalf("KV segment %+v at row %d, position %d of spans %+v", r, at, pos, spans)
			}
			at += r.n
		}
		if at != rows {
			t.Fatalf("KV segments cover %d of %d rows", at, rows)
		}
		limit := 1 + rng.IntN(maxSegmentRows)
		v := newView(kvcache.Full{}, 0)
		v.update(spans)
		segments = divideSpans(segments, v.spans, limit)
		at = 0
		for _, x := range segments {
			span, pos := posOf(x.row)
			if x.row != at || x.n < 1 || x.n > limit || x.pos != pos || x.of.row != span.Row ||
				x.row+x.n > span.Row+span.Rows {
				t.Fatalf("segment %+v at row %d, position %d of spans %+v", x, at, pos, spans)
			}
			at += x.n
		}
		if at != rows {
			t.Fatalf("segments cover %d of %d rows", at, rows)
		}
	}
}

// TestRotation checks that the chunks of a rotation cover every row and head once, divide no block
// within a panel of keys, and that every worker has two of them if there are enough heads and
// panels.
func TestRotation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		spans, rows := randomSpans(rng)
		segments := divideByBlock(nil, spans, 0)
		longest := 0
		for _, s := range segments {
			longest = max(longest, s.n)
		}
		kvHeads, workers := 1+rng.IntN(8), 1+rng.IntN(16)
		d := rotationOf(len(segments), longest, kvHeads, workers)
		seen := make([]int, rows*kvHeads)
		for u := range d.chunks(len(segments)) {
			of := &segments[u/(d.heads*d.rows)]
			s, ok := d.rowsOf(of, u%d.rows)
			if !ok {
				continue
			}
			if s.block != of.block || s.pos-s.row != of.pos-of.row || s.pos > of.pos && s.pos%rotationRows != 0 {
				t.Fatalf("%+v is no part of %+v", s, *of)
			}
			head := u / d.rows % d.heads * d.each
			for h := head; h < min(head+d.each, kvHeads); h++ {
				for r := s.row; r < s.row+s.n; r++ {
					seen[r*kvHeads+h]++
				}
			}
		}
		for i, n := range seen {
			if n != 1 {
				t.Fatalf("row %d, head %d is in %d chunks of %+v, spans %+v", i/kvHeads, i%kvHeads, n, d, spans)
			}
		}
		if n := d.chunks(len(segments)); n < 2*workers && (d.each > 1 || 2*rotationRows*d.rows <= longest) {
			t.Errorf("%d segments of up to %d rows, %d heads: %d chunks for %d workers", len(segments), longest,
				kvHeads, n, workers)
		}
	}
}
