package responses

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/jsontext"
)

// storedBytes bounds the memory of stored answers of /v1/responses.
const storedBytes = 64 << 20

// storedOverhead estimates the bytes of an answer in addition to its text.
const storedOverhead = 1 << 10

// store keeps answers of /v1/responses with their input, so that later requests can continue an
// answer or reference its items by id. An answer holds only its own turn and points to the answer
// before it, so a chain takes memory proportional to its text. If memory is full, the API key that
// uses most loses its least recently used answer without a successor.
type store struct {
	mu     sync.Mutex
	left   int64
	byID   map[string]*turn
	items  map[string]*turn // by the ids of the output items
	owners map[[sha256.Size]byte]*owner
}

// owner has the answers of one API key.
type owner struct {
	bytes  int64
	leaves list.List // of *turn without successor, most recently used first
}

// turn is one stored answer. Fields read without the lock never change.
type turn struct {
	id       string
	salt     [sha256.Size]byte
	previous *turn
	input    []json.RawMessage // with references resolved
	output   []json.RawMessage
	body     []byte // the whole answer

	bytes      int64
	successors int           // number of turns and requests that continue it
	leaf       *list.Element // element of the owner's leaves; nil if successors > 0 or hidden
	hidden     bool          // can no longer be requested
}

// newStore returns a store that keeps up to bytes.
func newStore(bytes int64) *store {
	return &store{left: bytes, byID: map[string]*turn{}, items: map[string]*turn{},
		owners: map[[sha256.Size]byte]*owner{}}
}

// get returns the answer with an id, or nil if the API key with this salt has none.
func (s *store) get(salt [sha256.Size]byte, id string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(salt, id)
}

// find is get with the lock held.
func (s *store) find(salt [sha256.Size]byte, id string) *turn {
	t := s.byID[id]
	if t == nil || t.salt != salt {
		return nil
	}
	return t
}

// hold is like get for a request that continues the answer, and keeps it until release.
func (s *store) hold(salt [sha256.Size]byte, id string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(salt, id)
	if t != nil {
		s.retain(t)
	}
	return t
}

// release ends hold. t may be nil.
func (s *store) release(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(t, true)
}

// retain records that a turn or request continues t.
func (s *store) retain(t *turn) {
	if t.successors++; t.leaf != nil {
		s.owners[t.salt].leaves.Remove(t.leaf)
		t.leaf = nil
	}
}

// drop records that a turn or request that continued t is gone. used states whether t counts as
// recently used.
func (s *store) drop(t *turn, used bool) {
	for t != nil {
		if t.successors--; t.successors > 0 {
			return
		}
		switch o := s.owners[t.salt]; {
		case t.hidden:
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

// forget drops an answer without successors and returns the one before it.
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
	return t.previous
}

// hide makes an answer unavailable to requests.
func (s *store) hide(t *turn) {
	t.hidden = true
	delete(s.byID, t.id)
	for _, item := range t.output {
		if id := itemID(item); s.items[id] == t {
			delete(s.items, id)
		}
	}
}

// put stores an answer. It returns false if there is no room for it.
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
	if t.previous != nil {
		s.retain(t.previous)
	}
	s.byID[t.id] = t
	for _, item := range t.output {
		if id := itemID(item); id != "" {
			s.items[id] = t
		}
	}
	return true
}

// makeRoom drops answers until so many bytes are free. It returns false if too many are in use.
func (s *store) makeRoom(bytes int64) bool {
	for s.left < bytes {
		var largest *owner
		for _, o := range s.owners {
			if o.leaves.Len() > 0 && (largest == nil || o.bytes > largest.bytes) {
				largest = o
			}
		}
		if largest == nil {
			return false
		}
		s.drop(s.forget(largest.leaves.Back().Value.(*turn)), false)
	}
	return true
}

// remove deletes an answer at the client's request. Answers that continue it stay.
func (s *store) remove(salt [sha256.Size]byte, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.find(salt, id)
	if t == nil {
		return false
	}
	if t.successors > 0 {
		s.hide(t)
	} else {
		s.drop(s.forget(t), false)
	}
	return true
}

// item returns the item with an id from an answer to the same API key, or nil.
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

// itemID returns the id of an item, or "".
func itemID(item json.RawMessage) string {
	var named struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(item, &named)
	return named.ID
}

// chain returns the turns up to t, oldest first; none if t is nil.
func (t *turn) chain() []*turn {
	n := 0
	for at := t; at != nil; at = at.previous {
		n++
	}
	all := make([]*turn, n)
	for at := t; at != nil; at = at.previous {
		n--
		all[n] = at
	}
	return all
}

// noResponse returns the error for an unknown answer.
func noResponse(status int, id string) *apierr.Error {
	return apierr.New(status, apierr.TypeInvalid, "response_not_found",
		"unknown response %q; it was not stored, belongs to another API key, or was evicted", jsontext.Clip(id))
}

// Get handles GET /v1/responses/{id} and /v1/responses/{id}/input_items. The id, with the rest of
// the path, is a path value of the request.
func (s *API) Get(w http.ResponseWriter, r *http.Request) {
	id, items := strings.CutSuffix(r.PathValue("id"), inputItems)
	t := s.answers.get(w.(*exchange.Exchange).Salt, id)
	if t == nil {
		noResponse(http.StatusNotFound, id).Write(w)
		return
	}
	if items {
		listItems(w, r, t)
		return
	}
	jsontext.Write(w, http.StatusOK, t.body)
}

// Delete handles DELETE /v1/responses/{id}. The id is a path value of the request.
func (s *API) Delete(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !s.answers.remove(w.(*exchange.Exchange).Salt, id) {
		noResponse(http.StatusNotFound, id).Write(w)
		return
	}
	jsontext.Write(w, http.StatusOK, append(jsontext.AppendString([]byte(`{"id":`), id),
		`,"object":"response","deleted":true}`...))
}
