package generation

import "sync"

// nameSet is a bounded set of names. Methods may be called concurrently.
type nameSet struct {
	mu    sync.Mutex
	names map[string]bool
}

// maxNames bounds the unknown fields that a server logs, so that clients that invent names fill
// neither memory nor the log.
const maxNames = 64

// add adds a name and reports whether it was new and the set had room.
func (s *nameSet) add(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[name] || len(s.names) == maxNames {
		return false
	}
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[name] = true
	return true
}
