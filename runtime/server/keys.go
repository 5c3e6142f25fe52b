package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/request"
)

// keyHeader is the alternative to Authorization: Bearer.
const keyHeader = "X-Api-Key"

// keyring holds the digests of the accepted keys. It is immutable; SetKeys replaces it atomically.
type keyring []keyDigest

// keyDigest is the SHA-256 digest of a key.
type keyDigest struct {
	sum [sha256.Size]byte
	of  request.Urgency // default urgency of requests with this key
}

// SetKeys replaces the accepted keys, which are lines in the format of CheckKey. Without keys, the
// API is open. Running requests continue. It may be called concurrently with requests.
func (s *Server) SetKeys(keys []string) {
	if len(keys) == 0 {
		s.keys.Store(nil)
		return
	}
	ring := keyring{}
	for _, line := range keys {
		if k, u, ok := request.ParseKey(line); k != "" && ok { // blank lines are not keys
			ring = append(ring, keyDigest{sha256.Sum256([]byte(k)), u})
		}
	}
	s.keys.Store(&ring)
}

// authorized compares the key of a request with every accepted key, in time that depends on
// neither. It sets the key's digest as the salt of the prefix cache, so that keys cannot observe
// each other's cached prefixes.
func (s *Server) authorized(x *exchange.Exchange, r *http.Request) bool {
	ring := s.keys.Load()
	if ring == nil {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if scheme == "" { // clients of Anthropic's API
		scheme, key = "Bearer", r.Header.Get(keyHeader)
	}
	x.Salt = sha256.Sum256([]byte(strings.TrimSpace(key)))
	found := 0
	for i := range *ring {
		same := subtle.ConstantTimeCompare(x.Salt[:], (*ring)[i].sum[:])
		found |= same
		x.KeyUrgency.Class |= api.Class(same) * (*ring)[i].of.Class
		x.KeyUrgency.Priority |= int32(same) * (*ring)[i].of.Priority
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}
