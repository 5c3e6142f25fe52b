package grammar

import "sync"

// shelf keeps the masks that answers under one grammar made, for others of them: each answer has
// states of its own, and a mask is the larger part of what a state takes and nearly all of the
// time. Its bytes are those of the Memory of the grammar.
type shelf struct {
	memory *Memory
	mu     sync.Mutex
	by     map[maskKey]keptMask
	bytes  int64
	// followed is what was found ahead.
	followed map[followedKey]*followed
}

type maskKey struct {
	v  *Vocab
	of stackName
}

// keptMask is a mask without regard to the tokens left, and the greatest cost after one of its
// tokens.
type keptMask struct {
	mask   *Mask
	masked float64
}

func (s *shelf) get(key maskKey) (keptMask, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.by[key]
	return k, ok
}

func (s *shelf) found(key followedKey) *followed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followed[key]
}

// room reserves bytes; the lock is held.
func (s *shelf) room(n int64) bool {
	if !s.memory.take(n) {
		return false
	}
	s.bytes += n
	return true
}

// put keeps a mask, where there is room for it.
func (s *shelf) put(key maskKey, k keptMask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, met := s.by[key]; met {
		return true
	}
	if !s.room(k.mask.memory()) {
		return false
	}
	if s.by == nil {
		s.by = map[maskKey]keptMask{}
	}
	s.by[key] = k
	return true
}

// memory returns about how many bytes a kept mask takes.
func (m *Mask) memory() int64 { return int64(8*len(m.bits)) + 128 }

// Kept returns about how many bytes the masks take that answers under the grammar share.
func (g *Grammar) Kept() int64 {
	g.masks.mu.Lock()
	defer g.masks.mu.Unlock()
	return g.masks.bytes
}

// Memory returns about how many bytes the grammar takes, with the masks that it keeps.
func (g *Grammar) Memory() int64 { return g.program.bytes + g.Kept() }

// Release drops the masks that the grammar keeps. Its answers may go on and keep masks again.
func (g *Grammar) Release() {
	s := &g.masks
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.give(s.bytes)
	s.by, s.followed, s.bytes = nil, nil, 0
}
