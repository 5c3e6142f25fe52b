package server

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// storedBytes bounds what is kept of the answers of /v1/responses.
const storedBytes = 64 << 20

// storedOverhead is what an answer takes beside its text.
const storedOverhead = 1 << 10

// store keeps answers of /v1/responses and what they were asked with, so that a request may go on
// behind one by its id, and name an item of it. An answer holds what its turn added and points to
// the one before it: a chain takes memory as its text does. Where there is no room, the key that
// holds most loses the answer that was used least recently of those that nobody went on from.
type store struct {
	mu     sync.Mutex
	left   int64
	byID   map[string]*turn
	items  map[string]*turn // by the ids of items of their output
	owners map[[sha256.Size]byte]*owner
}

// owner is the answers of one key.
type owner struct {
	bytes  int64
	leaves list.List // of *turn that nobody went on from, the latest used first
}

// turn is one answer. What is read of it without the lock never changes.
type turn struct {
	id     string
	salt   [sha256.Size]byte
	before *turn
	input  []json.RawMessage // items, references resolved
	output []json.RawMessage
	body   []byte // the whole answer

	bytes int64
	after int           // turns and requests that go on from it
	leaf  *list.Element // among its owner's leaves; nil where after is not 0, or it is gone
	gone  bool          // nobody may ask for it any more
}

func newStore(bytes int64) *store {
	return &store{left: bytes, byID: map[string]*turn{}, items: map[string]*turn{},
		owners: map[[sha256.Size]byte]*owner{}}
}

// get is the answer of an id to the key that it was made for; nil where there is none.
func (s *store) get(salt [sha256.Size]byte, id string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(salt, id)
}

func (s *store) find(salt [sha256.Size]byte, id string) *turn {
	t := s.byID[id]
	if t == nil || t.salt != salt {
		return nil
	}
	return t
}

// hold is get for a request that goes on from the answer, which is kept until release.
func (s *store) hold(salt [sha256.Size]byte, id string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(salt, id)
	if t != nil {
		s.grow(t)
	}
	return t
}

// release ends what hold began. Of nil it ends nothing.
func (s *store) release(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shrink(t, true)
}

// grow notes that something goes on from t.
func (s *store) grow(t *turn) {
	if t.after++; t.leaf != nil {
		s.owners[t.salt].leaves.Remove(t.leaf)
		t.leaf = nil
	}
}

// shrink notes that something no longer goes on from t, just used or not.
func (s *store) shrink(t *turn, used bool) {
	for t != nil {
		if t.after--; t.after > 0 {
			return
		}
		switch o := s.owners[t.salt]; {
		case t.gone:
			t = s.forget(t)
			continue
		case used:
			t.leaf = o.leaves.PushFront(t)
		default:
			t.leaf = o.leaves.PushBack(t)
		}
		return
	}
}

// forget drops an answer that nothing goes on from; it returns the one before it.
func (s *store) forget(t *turn) *turn {
	s.hide(t)
	o := s.owners[t.salt]
	if t.leaf != nil {
		o.leaves.Remove(t.leaf)
		t.leaf = nil
	}
	s.left += t.bytes
	if o.bytes -= t.bytes; o.bytes == 0 {
		delete(s.owners, t.salt)
	}
	return t.before
}

// hide lets nobody ask for an answer any more.
func (s *store) hide(t *turn) {
	t.gone = true
	delete(s.byID, t.id)
	for _, item := range t.output {
		if id := itemID(item); s.items[id] == t {
			delete(s.items, id)
		}
	}
}

// put keeps an answer, unless it alone exceeds what may be kept.
func (s *store) put(t *turn) bool {
	t.bytes = storedOverhead + int64(len(t.body))
	for _, items := range [][]json.RawMessage{t.input, t.output} {
		for _, item := range items {
			t.bytes += int64(len(item)) + 32
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left < t.bytes && !s.makeRoom(t.bytes) {
		return false
	}
	s.left -= t.bytes
	o := s.owners[t.salt]
	if o == nil {
		o = &owner{}
		s.owners[t.salt] = o
	}
	o.bytes += t.bytes
	t.leaf = o.leaves.PushFront(t)
	if t.before != nil {
		s.grow(t.before)
	}
	s.byID[t.id] = t
	for _, item := range t.output {
		if id := itemID(item); id != "" {
			s.items[id] = t
		}
	}
	return true
}

// makeRoom drops answers until so many bytes are free, unless too many are in use.
func (s *store) makeRoom(bytes int64) bool {
	for s.left < bytes {
		var most *owner
		for _, o := range s.owners {
			if o.leaves.Len() > 0 && (most == nil || o.bytes > most.bytes) {
				most = o
			}
		}
		if most == nil {
			return false
		}
		s.shrink(s.forget(most.leaves.Back().Value.(*turn)), false)
	}
	return true
}

// remove forgets an answer at its client's wish. Those that went on from it stay.
func (s *store) remove(salt [sha256.Size]byte, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(salt, id)
	if t == nil {
		return false
	}
	if t.after > 0 {
		s.hide(t)
	} else {
		s.shrink(s.forget(t), false)
	}
	return true
}

// item is the item of an id, in an answer to the same key; nil where there is none.
func (s *store) item(salt [sha256.Size]byte, id string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.items[id]; t != nil && t.salt == salt {
		for _, item := range t.output {
			if itemID(item) == id {
				return item
			}
		}
	}
	return nil
}

func itemID(item json.RawMessage) string {
	var named struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(item, &named)
	return named.ID
}

// chain is the turns up to t, the first one first. Of nil there are none.
func (t *turn) chain() []*turn {
	n := 0
	for at := t; at != nil; at = at.before {
		n++
	}
	all := make([]*turn, n)
	for at := t; at != nil; at = at.before {
		n--
		all[n] = at
	}
	return all
}

const responsesPrefix = "/v1/responses/"

func noResponse(status int, id string) *apiError {
	return newError(status, typeInvalid, "response_not_found", "there is no answer %q; it was not stored, belongs to "+
		"another key, or gave way to later ones", clip(id))
}

// stored is the handler of GET /v1/responses/{id}.
func (s *Server) stored(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, responsesPrefix)
	t := s.answers.get(w.(*exchange).salt, id)
	if t == nil {
		noResponse(http.StatusNotFound, id).write(w)
		return
	}
	writeJSON(w, http.StatusOK, t.body)
}

// forgotten is the handler of DELETE /v1/responses/{id}.
func (s *Server) forgotten(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, responsesPrefix)
	if !s.answers.remove(w.(*exchange).salt, id) {
		noResponse(http.StatusNotFound, id).write(w)
		return
	}
	writeJSON(w, http.StatusOK, append(appendString([]byte(`{"id":`), id), `,"object":"response","deleted":true}`...))
}
