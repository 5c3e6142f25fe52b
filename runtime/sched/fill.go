package sched

import "sandwich/runtime/kvcache"

// Fill describes the forward in flight on a lane as a batch, in b's own memory: tokens, block
// tables, positions, and the rows whose logits are wanted. These are the last row of a prompt,
// every row if Event.Logits asks for it, and of a decode batch the rows of the last known tokens
// and of drafts. Without a forward in flight b is empty. Tokens of requests that arrived without
// ids are zero.
func (s *Scheduler) Fill(lane LaneID, b *kvcache.Batch) {
	b.Reset()
	f := &s.flights[lane]
	if !f.active {
		return
	}
	b.Prefill = f.prefill
	for _, r := range f.reqs {
		pos, row := r.seq.Len(), len(b.Tokens)
		draft := max(0, r.rows-r.pending())
		s.cache.CoverDraft(r.seq, pos+r.rows-draft, draft)
		b.AddSpan(r.seq, kvcache.Span{Seq: r.slot, Row: row, Rows: r.rows, Pos: pos, Draft: draft})
		for p := pos; p < pos+r.rows; p++ {
			var t int32
			if r.named {
				t = r.tokens[p]
			}
			b.Tokens = append(b.Tokens, t)
			if p+1 >= r.known || r.logits && f.prefill {
				b.LogitRows = append(b.LogitRows, int32(len(b.Tokens)-1))
			}
		}
	}
}
