package rig

import (
	"math/rand/v2"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
)

// batch returns the batch of a test and caches it.
func (r *Rig) batch(x Test) *kvcache.Batch {
	name := x.Name()
	if r.batches[name] == nil {
		switch {
		case x.Phase == phase.Prefill:
			r.batches[name] = r.prompt(x.N)
		case x.Depth > 0:
			r.batches[name] = r.verify(x.N, x.Depth)
		default:
			r.batches[name] = r.step(x.N)
		}
	}
	return r.batches[name]
}

// textRows is the number of tokens of a text if several are read in one forward: a typical length
// of embedded texts, and a multiple of the blocks of the cache.
const textRows = 128

// prompt returns a batch with a prompt of n tokens, or for a pooled model with texts of n tokens in
// total, packed as serving packs them.
func (r *Rig) prompt(n int) *kvcache.Batch {
	b := kvcache.Batch{Tokens: r.tokens(n), Prefill: true}
	texts := 1
	if r.model.Model.Pooled() {
		texts = r.size.Batch
	}
	cache := r.model.NewCache()
	for _, s := range textSpans(n, texts) {
		r.addSpan(&b, cache, s)
		b.LogitRows = append(b.LogitRows, int32(s.Row+s.Rows-1))
	}
	return &b
}

// textSpans divides rows among at most limit texts, of whole blocks except for the last one.
func textSpans(rows, limit int) (out []kvcache.Span) {
	each := max(textRows, kvcache.BlocksFor((rows+limit-1)/limit)*kvcache.BlockTokens)
	for row := 0; row < rows; row += each {
		out = append(out, kvcache.Span{Seq: len(out), Row: row, Rows: min(each, rows-row)})
	}
	return out
}

// step returns a batch of n sequences with the rig's depth of positions each.
func (r *Rig) step(n int) *kvcache.Batch {
	b := kvcache.Batch{Tokens: r.tokens(n)}
	cache := r.model.NewCache()
	for i := range n {
		r.addSpan(&b, cache, kvcache.Span{Seq: i, Row: i, Rows: 1, Pos: r.size.Depth})
		b.LogitRows = append(b.LogitRows, int32(i))
	}
	return &b
}

// verify returns a batch with n rows of one sequence after depth positions, of which all but the
// first are a draft.
func (r *Rig) verify(n, depth int) *kvcache.Batch {
	b := kvcache.Batch{Tokens: r.tokens(n)}
	r.addSpan(&b, r.model.NewCache(), kvcache.Span{Rows: n, Pos: depth, Draft: n - 1})
	for i := range n {
		b.LogitRows = append(b.LogitRows, int32(i))
	}
	return &b
}

func (r *Rig) tokens(n int) []int32 {
	rng := rand.New(rand.NewPCG(r.seed, 3))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(rng.IntN(r.model.Model.Dims.Vocab))
	}
	return out
}

// addSpan adds rows of a new sequence. The contents of the positions before them are arbitrary. The
// rig was opened for all of its tests.
func (r *Rig) addSpan(b *kvcache.Batch, c *kvcache.Cache, span kvcache.Span) {
	seq := c.Open(kvcache.Salt{})
	fits := c.Reserve(seq, span.Pos+span.Rows)
	if fits {
		c.Advance(seq, span.Pos) // it would release the block that ReserveDraft takes
		fits = span.Draft == 0 || c.ReserveDraft(seq, 0)
	}
	if !fits {
		panic("rig: a test needs more blocks than the rig has")
	}
	c.CoverDraft(seq, span.Pos+span.Rows-span.Draft, span.Draft)
	b.AddSpan(seq, span)
}
