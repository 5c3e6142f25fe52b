package grammar

import "sync"

// maskCache stores the masks of a grammar for all of its answers. Each answer has separate states,
// but a mask takes most of the memory of a state and nearly all of the time. Memory limits its
// size.
type maskCache struct {
	memory *Memory
	mu     sync.Mutex
	by     map[maskKey]keptMask
	bytes  int64
	// followed caches the results of Grammar.ahead.
	followed map[followedKey]*followed
}

type maskKey struct {
	v  *Vocab
	of stackName
}

// keptMask is a mask for an unlimited number of tokens, and the largest cost after one of its
// tokens.
type keptMask struct {
	mask   *Mask
	masked float64
}

func (s *maskCache) get(key maskKey) (keptMask, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.by[key]
	return k, ok
}

func (s *maskCache) found(key followedKey) *followed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followed[key]
}

// room reserves bytes. The caller holds s.mu.
func (s *maskCache) room(n int64) bool {
	if !s.memory.take(n) {
		return false
	}
	s.bytes += n
	return true
}

// put stores a mask. It returns false if it does not fit.
func (s *maskCache) put(key maskKey, k keptMask) bool {
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

// memory returns about how many bytes a cached mask takes.
func (m *Mask) memory() int64 { return int64(8*len(m.bits)) + 128 }

// followed caches the tokens of a trie that lead from a words state to states inside words: the
// tokens that walker.follow adds independent of the stack. The goroutine of a request computes it
// when an answer begins, so that no mask has to follow thousands of words.
type followed struct {
	bits  []uint64
	worst float64 // the largest distance to the end after one of the tokens
	exits []exit
}

// exit is a node of a trie at which a word may end, and the state after the word.
type exit struct{ node, to int32 }

type followedKey struct {
	of  *trie
	top int32
}
