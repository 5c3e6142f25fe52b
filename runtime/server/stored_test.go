package server

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

// as sends a request with a key.
func as(s *Server, key, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// answered posts a request of /v1/responses and returns the answer, which must succeed.
func answered(t *testing.T, s *Server, key, body string) any {
	t.Helper()
	w := as(s, key, "POST", responsesPath, body)
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", body, w.Code, w.Body)
	}
	return parsed(t, w.Body.Bytes())
}

// A request continues an answer by its id: with all earlier turns, its own instructions, and the
// calls of the results that it sends.
func TestPreviousResponse(t *testing.T) {
	g := &calling{}
	s := New(g, Options{APIKeys: []string{"ours", "theirs"}})
	tools := `"tools":[{"type":"custom","name":"clock"},{"type":"function","name":"pick"}]`
	one := answered(t, s, "ours", `{"instructions":"Be brief","input":"Hi",`+tools+`}`)
	id := at(one, "id").(string)
	two := answered(t, s, "ours", `{"instructions":"Be long","previous_response_id":"`+id+`","input":[
		{"type":"custom_tool_call_output","call_id":"c0","output":"noon"},
		{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"3"}]}]}`)
	var said []string
	for _, m := range g.last.Messages {
		said = append(said, fmt.Sprintf("%s %q %q %v %s", m.Role, m.Content, m.Reasoning, m.Calls, m.Name))
	}
	want := `system "Be long" "" [] |user "Hi" "" [] |` +
		`assistant "On it." "hm" [{c0 clock {"input":""}} {c1 pick {}}] |tool "noon" "" [] clock|tool "3" "" [] pick`
	if got := strings.Join(said, "|"); got != want || at(two, "previous_response_id") != id ||
		at(two, "store") != true {
		t.Errorf("got  %s\nwant %s\n%v", got, want, two)
	}
	// An id stands for its item, also twice and after another answer.
	item := at(one, "output", 1, "id").(string)
	answered(t, s, "ours", `{"input":[{"type":"item_reference","id":"`+item+`"},{"role":"user","content":"x"}]}`)
	if m := g.last.Messages; len(m) != 2 || m[0].Role != "assistant" || m[0].Content != "On it." {
		t.Errorf("%+v", m)
	}
	get := func(method, key, id string) (int, string) {
		w := as(s, key, method, responsesPath+"/"+id, "")
		return w.Code, w.Body.String()
	}
	if code, text := get("GET", "ours", id); code != 200 || at(parsed(t, []byte(text)), "output", 3,
		"call_id") != "c1" {
		t.Errorf("%d %s", code, text)
	}
	unstored := at(answered(t, s, "ours", `{"input":"x","store":false}`), "id").(string)
	for _, c := range []struct{ key, id string }{{"theirs", id}, {"ours", "resp_none"}, {"ours", unstored}} {
		if code, text := get("GET", c.key, c.id); code != 404 || !strings.Contains(text, "response_not_found") {
			t.Errorf("%v: %d %s", c, code, text)
		}
		w := as(s, c.key, "POST", responsesPath, `{"input":"x","previous_response_id":"`+c.id+`"}`)
		if w.Code != 400 || at(parsed(t, w.Body.Bytes()), "error", "code") != "previous_response_not_found" {
			t.Errorf("%v: %d %s", c, w.Code, w.Body)
		}
		if code, _ := get("DELETE", c.key, c.id); code != 404 {
			t.Errorf("%v: deleted with %d", c, code)
		}
	}
	last := at(two, "id").(string)
	if code, _ := get("DELETE", "ours", id); code != 200 {
		t.Errorf("status %d", code)
	}
	if code, _ := get("GET", "ours", id); code != 404 {
		t.Errorf("a deleted answer is still there: %d", code)
	}
	answered(t, s, "ours", `{"input":"x","previous_response_id":"`+last+`"}`) // the continuation stays
	if len(g.last.Messages) != 6 {
		t.Errorf("%+v", g.last.Messages)
	}
}

// A chain of 10^4 answers takes memory proportional to its text, and is refused if it exceeds the
// messages of a request.
func TestLongChain(t *testing.T) {
	f := &fake{words: []string{"x"}}
	s := New(f, Options{})
	first := at(answered(t, s, "", `{"input":"go"}`), "id").(string)
	before := s.answers.get([32]byte{}, first)
	for i := range 10_000 {
		next := &turn{id: fmt.Sprint("resp_", i), before: before, output: before.output, body: before.body}
		if !s.answers.put(next) {
			t.Fatalf("turn %d was not kept", i)
		}
		before = next
	}
	if n, used := len(s.answers.byID), storedBytes-s.answers.left; n != 10_001 || used > int64(n)*4096 {
		t.Errorf("%d answers take %d bytes", n, used)
	}
	answered(t, s, "", `{"input":"on","previous_response_id":"resp_2000"}`)
	if n := len(f.request().Messages); n != 2004 {
		t.Errorf("%d messages", n)
	}
	for most, has := range map[int64]string{8 << 20: "bytes accepted", 64 << 20: "8192 messages"} {
		s.Limits.MaxBody = most
		w := post(t, s, responsesPath, `{"input":"on","previous_response_id":"resp_9999"}`)
		if w.Code != 400 || !strings.Contains(w.Body.String(), has) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// Stored answers stay within their limit. The key that uses most loses its least recently used
// answers, but none that a request or a later answer continues.
func TestStoreBounds(t *testing.T) {
	s := newStore(20 * storedOverhead)
	put := func(key byte, id string, before *turn) *turn {
		n := &turn{id: id, salt: [32]byte{key}, before: before,
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
	if s.left != 20*storedOverhead || len(s.owners) != 0 || len(s.items) != 0 || !last.gone {
		t.Errorf("%d bytes left, %d owners, %d items", s.left, len(s.owners), len(s.items))
	}
}

// A failed stream stores nothing.
func TestFailedIsNotStored(t *testing.T) {
	s := New(&fake{words: []string{"a"}, endErr: api.ErrClosed}, Options{})
	post(t, s, responsesPath, `{"input":"x","stream":true}`)
	if len(s.answers.byID) != 0 {
		t.Errorf("%d answers are kept", len(s.answers.byID))
	}
}
