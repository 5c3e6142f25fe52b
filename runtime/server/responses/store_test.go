package responses

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Stored answers stay within their limit. The key that uses most loses its least recently used
// answers, but none that a request or a later answer continues.
func TestStoreBounds(t *testing.T) {
	s := newStore(20 * storedOverhead)
	put := func(key byte, id string, before *turn) *turn {
		n := &turn{id: id, salt: [32]byte{key}, previous: before,
			output: []json.RawMessage{json.RawMessage(`{"id":"item ` + id + `"}`)}}
		s.put(n)
		return n
	}
	have := func(key byte, id string) bool { return s.get([32]byte{key}, id) != nil }
	root := put(1, "root", nil)
	last := put(1, "leaf", root)
	put(2, "small", nil)
	held := s.hold([32]byte{1}, "leaf")
	for i := range 40 {
		put(1, fmt.Sprint(i), nil)
	}
	if !have(1, "root") || !have(1, "leaf") || !have(2, "small") || have(1, "0") || !have(1, "39") || s.left < 0 {
		t.Errorf("root %v, leaf %v, small %v, first %v, last %v, %d bytes left", have(1, "root"), have(1, "leaf"),
			have(2, "small"), have(1, "0"), have(1, "39"), s.left)
	}
	s.release(held)
	s.release(nil)
	for i := range 40 {
		put(1, fmt.Sprint("more ", i), nil)
	}
	if have(1, "root") || have(1, "leaf") || s.item([32]byte{1}, "item leaf") != nil ||
		s.item([32]byte{2}, "item small") == nil || s.item([32]byte{1}, "item small") != nil {
		t.Error("a chain that nothing uses stays, or an item of another key is given away")
	}
	if s.put(&turn{id: "huge", body: make([]byte, 21*storedOverhead)}) {
		t.Error("more than there is room for was kept")
	}
	// A deleted answer, and one evicted while a request continued it, are freed when they have no
	// successor.
	for len(s.byID) > 0 {
		for id, t := range s.byID {
			s.remove(t.salt, id)
		}
	}
	if s.left != 20*storedOverhead || len(s.owners) != 0 || len(s.items) != 0 || !last.hidden {
		t.Errorf("%d bytes left, %d owners, %d items", s.left, len(s.owners), len(s.items))
	}
}

// A chain of 10^4 answers takes memory proportional to its text, and is refused if it exceeds the
// messages of a request.
func TestLongChain(t *testing.T) {
	answers := newStore(storedBytes)
	message := func(role, text string) []json.RawMessage {
		return []json.RawMessage{fmt.Appendf(nil, `{"type":"message","role":%q,"content":%q}`, role, text)}
	}
	before := &turn{id: "resp_first", input: message("user", "go"), output: message("assistant", "x"),
		body: make([]byte, 1000)}
	answers.put(before)
	for i := range 10_000 {
		next := &turn{id: fmt.Sprint("resp_", i), previous: before, output: before.output, body: before.body}
		if !answers.put(next) {
			t.Fatalf("turn %d was not kept", i)
		}
		before = next
	}
	if n, used := len(answers.byID), storedBytes-answers.left; n != 10_001 || used > int64(n)*4096 {
		t.Errorf("%d answers take %d bytes", n, used)
	}
	a := &createRequest{answers: answers, maxBytes: 64 << 20}
	c, e := a.parse([]byte(`{"input":"on","previous_response_id":"resp_2000"}`))
	if e != nil || len(c.Messages) != 2004 {
		t.Fatalf("%v, %+v", e, c)
	}
	a.end()
	for limit, has := range map[int64]string{8 << 20: "bytes accepted", 64 << 20: "8192 messages"} {
		a := &createRequest{answers: answers, maxBytes: limit}
		_, e := a.parse([]byte(`{"input":"on","previous_response_id":"resp_9999"}`))
		if e == nil || e.Status != 400 || !strings.Contains(e.Message, has) {
			t.Errorf("at most %d bytes: %v", limit, e)
		}
		a.end()
	}
}
