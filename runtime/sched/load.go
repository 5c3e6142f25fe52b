package sched

import (
	"slices"

	"sandwich/runtime/kvcache"
)

// A request whose prompt is stored outside the cache is loading from its admission to the event
// Loaded or LoadFailed: it holds its blocks and its row, and no forward has it. The executor fills
// the blocks meanwhile.

// beginLoad starts the load of a request that was admitted, if more of its prompt can be loaded
// than the cache has.
func (s *Scheduler) beginLoad(r *request) {
	at := r.seq.Len()
	n := min(r.stored, (r.known-1)/kvcache.BlockTokens*kvcache.BlockTokens)
	if n <= at || n%kvcache.BlockTokens != 0 {
		return
	}
	r.loading = true
	s.loads = append(s.loads, r)
	s.actions = append(s.actions, Action{Kind: Load, ID: r.id, Pos: at, N: n, Pieces: s.cache.BeginLoad(r.seq, n)})
}

// endLoad ends the load of a request. If it failed, the request returns to its queue and computes
// its prompt.
func (s *Scheduler) endLoad(id ID, filled bool) {
	i := slices.IndexFunc(s.loads, func(r *request) bool { return r.id == id })
	if i < 0 {
		return
	}
	r := s.loads[i]
	s.loads = slices.Delete(s.loads, i, i+1)
	r.loading = false
	switch {
	case r.dead:
		s.release(r)
		s.spare = append(s.spare, r)
	case filled:
		at, n := r.seq.Len(), min(r.stored, (r.known-1)/kvcache.BlockTokens*kvcache.BlockTokens)
		s.cache.EndLoad(r.seq, r.tokens[at:n])
		r.reached = max(r.reached, n)
		s.stats.LoadedTokens += int64(n - at)
	default:
		r.stored = 0
		s.release(r)
		r.resumed = true
		s.enqueue(r)
	}
	if !r.dead {
		s.arrived = append(s.arrived, r) // it may halt a prefill now
	}
	s.blocked = nil // r can be preempted from now on
}

// Pin holds a cached block, so that it can be copied while forwards run (kvcache.Cache.Pin).
func (s *Scheduler) Pin(store int, k *kvcache.Key) (kvcache.BlockID, bool) {
	return s.cache.Pin(store, k)
}

// Unpin releases a block of Pin. A request that did not fit is tried again by the next Step.
func (s *Scheduler) Unpin(store int, id kvcache.BlockID) {
	s.cache.Unpin(store, id)
	s.releases++
}

// Has reports whether a store of the cache has a block with a key.
func (s *Scheduler) Has(store int, k *kvcache.Key) bool { return s.cache.Has(store, k) }
