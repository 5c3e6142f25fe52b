package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"sandwich/runtime/api"
)

// keyHeader holds a key where Authorization does not.
const keyHeader = "X-Api-Key"

// keyring is the digests of the keys that open the API. It is never changed, only
// replaced, so that a request sees either the old keys or the new.
type keyring []keyDigest

type keyDigest struct {
	sum [sha256.Size]byte
	of  urgency // of requests that state none
}

// SetKeys replaces the keys, given as CheckKey wants them; with none, no key is asked for.
// Requests that were let in with the old ones go on.
func (s *Server) SetKeys(keys []string) {
	if len(keys) == 0 {
		s.keys.Store(nil)
		return
	}
	ring := keyring{}
	for _, line := range keys {
		if k, u, ok := keyOf(line); k != "" && ok { // a blank line of a file opens nothing
			ring = append(ring, keyDigest{sha256.Sum256([]byte(k)), u})
		}
	}
	s.keys.Store(&ring)
}

// authorized compares the key with every accepted one in time that depends on
// neither: digests have one length, and no comparison ends the loop. The digest
// becomes the salt of what the request leaves in the prefix cache, so that one
// key's cache tells nothing of another's.
func (s *Server) authorized(x *exchange, r *http.Request) bool {
	ring := s.keys.Load()
	if ring == nil {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if scheme == "" { // as clients of Anthropic's API send it
		scheme, key = "Bearer", r.Header.Get(keyHeader)
	}
	x.salt = sha256.Sum256([]byte(strings.TrimSpace(key)))
	found := 0
	for i := range *ring {
		same := subtle.ConstantTimeCompare(x.salt[:], (*ring)[i].sum[:])
		found |= same
		x.ofKey.class |= api.Class(same) * (*ring)[i].of.class
		x.ofKey.priority |= int32(same) * (*ring)[i].of.priority
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}
