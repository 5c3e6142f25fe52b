package exec

import (
	"slices"

	"sandwich/runtime/kvcache"
)

// stretch is consecutive rows of one sequence as the layers of a store see it: as if the blocks of
// the table were all there is, and the first row stood at position pos of them.
type stretch struct {
	row, n int // rows of the batch
	pos    int
	until  int // where the text ends, of which all rows see all; 0: they see what is before them
	table  []kvcache.BlockID
}

// view is what the layers of one store see of a batch.
type view struct {
	kind      kvcache.Kind
	store     int
	all       bool // the kind remembers everything
	passing   bool // and lets all rows of a span see all of it
	stretches []stretch
	ids       []kvcache.BlockID // of the tables of stretches that see less than everything
}

// newView is the view of a store of a kind.
func newView(kind kvcache.Kind, store int) view {
	_, passing := kind.(kvcache.Passing)
	return view{kind: kind, store: store, all: kind.Most() == kvcache.All, passing: passing}
}

// look lays out a batch. A kind that remembers everything sees each span as it is. Of others the
// rows of one block make a stretch, since what they read is the same: the blocks before that are
// read, in their order, and their own. So nothing of a row's result depends on what else is in the
// batch.
func (v *view) look(spans []kvcache.Span) {
	v.stretches, v.ids = v.stretches[:0], v.ids[:0]
	for i := range spans {
		s := &spans[i]
		if v.all {
			seen := stretch{row: s.Row, n: s.Rows, pos: s.Pos, table: s.Tables[v.store]}
			if v.passing {
				seen.until = s.Pos + s.Rows
			}
			v.stretches = append(v.stretches, seen)
			continue
		}
		for done := 0; done < s.Rows; {
			pos := s.Pos + done
			n := min(s.Rows-done, kvcache.BlockTokens-pos%kvcache.BlockTokens)
			table := v.read(s.Tables[v.store], pos/kvcache.BlockTokens)
			v.stretches = append(v.stretches, stretch{row: s.Row + done, n: n,
				pos: (len(table)-1)*kvcache.BlockTokens + pos%kvcache.BlockTokens, table: table})
			done += n
		}
	}
}

// read lists the blocks that the rows of a block read, ascending, and the block itself.
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
