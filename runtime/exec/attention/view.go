package attention

import (
	"slices"

	"sandwich/runtime/kvcache"
)

// viewSpan is consecutive rows of one sequence as the layers of a store see it: as if the table had
// all blocks, and the first row were at position pos of them.
type viewSpan struct {
	row, n int // rows of the batch
	pos    int
	until  int // end of the text, if every row sees all of it; 0: a row sees what precedes it
	table  []kvcache.BlockID
}

// view is what the layers of a store see of a batch.
type view struct {
	kind    kvcache.Kind
	store   int
	all     bool // the kind keeps every position
	passing bool // every row of a span sees all of it
	spans   []viewSpan
	ids     []kvcache.BlockID // tables of spans that see a part of the blocks
}

// newView returns the view of a store of a kind.
func newView(kind kvcache.Kind, store int) view {
	_, passing := kind.(kvcache.Passing)
	return view{kind: kind, store: store, all: kind.Most() == kvcache.All, passing: passing}
}

// update describes a batch. If the kind keeps every position, spans are as they are. Otherwise the
// rows of one block are a span, because they read the same blocks: those before that the kind
// reads, in order, and their own. So the result of a row does not depend on the rest of the batch.
func (v *view) update(spans []kvcache.Span) {
	v.spans, v.ids = v.spans[:0], v.ids[:0]
	for i := range spans {
		s := &spans[i]
		if v.all {
			seen := viewSpan{row: s.Row, n: s.Rows, pos: s.Pos, table: s.Tables[v.store]}
			if v.passing {
				seen.until = s.Pos + s.Rows
			}
			v.spans = append(v.spans, seen)
			continue
		}
		for done := 0; done < s.Rows; {
			pos := s.Pos + done
			n := min(s.Rows-done, kvcache.BlockTokens-pos%kvcache.BlockTokens)
			table := v.read(s.Tables[v.store], pos/kvcache.BlockTokens)
			v.spans = append(v.spans, viewSpan{row: s.Row + done, n: n,
				pos: (len(table)-1)*kvcache.BlockTokens + pos%kvcache.BlockTokens, table: table})
			done += n
		}
	}
}

// read returns the blocks that the rows of a block read, ascending, and the block itself.
func (v *view) read(table []kvcache.BlockID, block int) []kvcache.BlockID {
	from, left := len(v.ids), v.kind.Most()
	v.ids = append(v.ids, table[block])
	for b := block - 1; b >= 0 && left > 0; b-- {
		if v.kind.Reads(block, b) {
			v.ids = append(v.ids, table[b])
			left--
		}
	}
	slices.Reverse(v.ids[from:])
	return v.ids[from:]
}
