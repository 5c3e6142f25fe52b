package exec

import (
	"math/rand/v2"
	"testing"

	"sandwich/runtime/kvcache"
)

// randomSpans are spans as schedulers make them: a prefill chunk, or a decode batch of single rows.
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

// TestCuts: runs and tiles cover every row exactly once, in order, with its own position; a run
// stays inside the block that the table names, a tile inside its span and below the size of a tile.
func TestCuts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var runs []run
	var tiles []tile
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
		runs = cutRuns(runs, spans, 0)
		at := 0
		for _, r := range runs {
			span, pos := posOf(r.row)
			if r.row != at || r.n < 1 || r.pos != pos || r.pos/kvcache.BlockTokens != (r.pos+
				r.n-1)/kvcache.BlockTokens ||
				r.block != span.Tables[0][r.pos/kvcache.BlockTokens] {
				t.Fatalf("run %+v at row %d, position %d of spans %+v", r, at, pos, spans)
			}
			at += r.n
		}
		if at != rows {
			t.Fatalf("runs cover %d of %d rows", at, rows)
		}
		most := 1 + rng.IntN(attentionTile)
		v := newView(kvcache.Full{}, 0)
		v.look(spans)
		tiles = cutTiles(tiles, v.stretches, most)
		at = 0
		for _, x := range tiles {
			span, pos := posOf(x.row)
			if x.row != at || x.n < 1 || x.n > most || x.pos != pos || x.of.row != span.Row ||
				x.row+x.n > span.Row+span.Rows {
				t.Fatalf("tile %+v at row %d, position %d of spans %+v", x, at, pos, spans)
			}
			at += x.n
		}
		if at != rows {
			t.Fatalf("tiles cover %d of %d rows", at, rows)
		}
	}
}
