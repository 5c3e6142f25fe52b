package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// keyring is the digests of the keys that open the API. It is never changed, only
// replaced, so that a request sees either the old keys or the new.
type keyring [][sha256.Size]byte

// SetKeys replaces the keys; with none, no key is asked for. Requests that were
// let in with the old ones go on.
func (s *Server) SetKeys(keys []string) {
	if len(keys) == 0 {
		s.keys.Store(nil)
		return
	}
	ring := keyring{}
	for _, k := range keys {
		if k != "" { // a blank line of a file opens nothing
			ring = append(ring, sha256.Sum256([]byte(k)))
		}
	}
	s.keys.Store(&ring)
}

// authorized compares the key with every accepted one in time that depends on
// neither: digests have one length, and no comparison ends the loop.
func (s *Server) authorized(r *http.Request) bool {
	ring := s.keys.Load()
	if ring == nil {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
	found := 0
	for i := range *ring {
		found |= subtle.ConstantTimeCompare(sum[:], (*ring)[i][:])
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}
