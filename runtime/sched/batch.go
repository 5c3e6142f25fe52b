package sched

import (
	"fmt"

	"sandwich/runtime/kvcache"
)

// Fill describes the forward in flight as a batch, into b's own memory: tokens,
// tables, positions, and the rows that want logits (the last row of a prompt, or all of them where
// Event.Logits asks for it; every row of a decode batch, drafts included). Without a forward in
// flight b is empty. Tokens of requests that arrived without ids are zero.
func (s *Scheduler) Fill(b *kvcache.Batch) {
	b.Reset()
	f := &s.flights[0]
	if !f.active {
		return
	}
	b.Prefill = f.prefill
	for _, r := range f.reqs {
		pos, row := r.seq.Len(), len(b.Tokens)
		s.cache.Cover(r.seq, pos+r.rows)
		b.AddSpan(r.seq, kvcache.Span{Seq: r.slot, Row: row, Rows: r.rows, Pos: pos})
		for p := pos; p < pos+r.rows; p++ {
			var t int32
			if r.named {
				t = r.tokens[p]
			}
			b.Tokens = append(b.Tokens, t)
			if p+1 >= r.known || r.logits {
				b.LogitRows = append(b.LogitRows, int32(len(b.Tokens)-1))
			}
		}
	}
}

// Stats returns a snapshot.
func (s *Scheduler) Stats() Stats {
	st := s.stats
	st.Blocks, st.Free = s.cache.Blocks(), s.cache.Idle()
	st.Waiting = s.unready
	for _, q := range s.queue {
		for _, r := range q {
			st.Waiting[r.stated]++
		}
	}
	for _, r := range s.running {
		st.Running[r.stated]++
	}
	return st
}

// Precedes says whether the prompt of one live request is read before that of another, as far as
// that is a matter of their precedence.
func (s *Scheduler) Precedes(id, other ID) bool {
	r, o := s.byID[id], s.byID[other]
	return r != nil && o != nil && r.before(o)
}

// Cached is how many tokens of a prompt would be shared if it came now.
func (s *Scheduler) Cached(salt kvcache.Salt, prompt []int32) int {
	seq := s.cache.Open(salt)
	defer s.cache.Free(seq)
	return s.cache.Adopt(seq, prompt)
}

// Live is the number of requests that have not ended.
func (s *Scheduler) Live() int { return len(s.byID) }

// flies is in how many forwards in flight a request is.
func (s *Scheduler) flies(r *request) (n int) {
	for i := range s.flights {
		if f := &s.flights[i]; f.active && contains(f.reqs, r) {
			n++
		}
	}
	return n
}

// Check verifies the invariants of the scheduler and its cache; tests and
// SANDWICH_VERIFY=1 call it.
func (s *Scheduler) Check() error {
	open := make([]*kvcache.Sequence, len(s.running))
	slots := make(map[int]bool)
	for i, r := range s.running {
		open[i] = r.seq
		switch {
		case slots[r.slot] || r.slot < 0 || r.slot >= s.cfg.residents():
			return fmt.Errorf("sched: slot %d of request %d is taken or outside 0..%d", r.slot, r.id,
				s.cfg.residents()-1)
		case i > 0 && !s.running[i-1].before(r):
			return fmt.Errorf("sched: running requests are out of order at %d", r.id)
		case s.flies(r) > 1 || r.inFlight != (s.flies(r) == 1):
			return fmt.Errorf("sched: request %d disagrees with the forwards in flight", r.id)
		case !r.dead && s.byID[r.id] != r:
			return fmt.Errorf("sched: running request %d is not known", r.id)
		}
		slots[r.slot] = true
		if r.held != contains(s.held, r) || r.held && s.suspended == nil {
			return fmt.Errorf("sched: request %d disagrees with the forward that halted", r.id)
		}
	}
	fresh := [2]int{}
	for u, q := range s.queue {
		for i, r := range q {
			switch {
			case r.seq != nil || r.class != Class(u) || s.byID[r.id] != r:
				return fmt.Errorf("sched: waiting request %d is in the wrong place", r.id)
			case i > 0 && !q[i-1].before(r):
				return fmt.Errorf("sched: waiting requests are out of order at %d", r.id)
			}
			if !r.resumed {
				fresh[r.stated]++
			}
		}
	}
	if fresh != s.fresh {
		return fmt.Errorf("sched: %v fresh requests wait, %v counted", fresh, s.fresh)
	}
	return s.cache.Check(open)
}

func contains(rs []*request, r *request) bool {
	for _, o := range rs {
		if o == r {
			return true
		}
	}
	return false
}
