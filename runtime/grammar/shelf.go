package grammar

import "sync"

// shelf has the masks that answers under one grammar made, for others of them: each answer has
// states of its own, which none else touches, and a mask is the larger part of what a state takes
// and nearly all of the time.
type shelf struct {
	mu    sync.Mutex
	by    map[maskKey]keptMask
	bytes int64
	// followed is what was found ahead.
	followed map[followedKey]*followed
}

type maskKey struct {
	v  *Vocab
	of stackName
}

// keptMask is a mask without regard to what is left, and the greatest cost behind one of its
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

// put keeps a mask, where there is room for it.
func (s *shelf) put(key maskKey, k keptMask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := k.mask.memory()
	if s.bytes+size > shelfBytes {
		return false
	}
	if s.by == nil {
		s.by = map[maskKey]keptMask{}
	}
	if _, met := s.by[key]; !met {
		s.bytes += size
	}
	s.by[key] = k
	return true
}

// memory is about how many bytes a mask takes where it is kept.
func (m *Mask) memory() int64 { return int64(8*len(m.bits)) + 128 }

// Kept is about how many bytes the masks take that the answers share, and Memory the same with the
// automata.
func (g *Grammar) Kept() int64 {
	g.masks.mu.Lock()
	defer g.masks.mu.Unlock()
	return g.masks.bytes
}

// Memory is about how many bytes a grammar takes, with the masks that it keeps.
func (g *Grammar) Memory() int64 { return g.program.bytes + g.Kept() }
