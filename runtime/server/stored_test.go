package server

import (
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
	if w := as(s, "ours", "GET", "/responses/"+id, ""); w.Code != 200 {
		t.Errorf("without /v1: %d %s", w.Code, w.Body)
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

// A failed stream stores nothing.
func TestFailedIsNotStored(t *testing.T) {
	s := New(&fake{words: []string{"a"}, endErr: api.ErrClosed}, Options{})
	stream := post(t, s, responsesPath, `{"input":"x","stream":true}`).Body.String()
	_, rest, found := strings.Cut(stream, `"id":"resp_`)
	id, _, _ := strings.Cut(rest, `"`)
	if w := as(s, "", "GET", responsesPath+"/resp_"+id, ""); !found || w.Code != 404 {
		t.Errorf("resp_%s: %d %s in %s", id, w.Code, w.Body, stream)
	}
}

// TestInputItems checks the list of the input of a stored answer.
func TestInputItems(t *testing.T) {
	s := New(&calling{}, Options{APIKeys: []string{"ours", "theirs"}})
	one := answered(t, s, "ours", `{"input":"Hi"}`)
	id := at(one, "id").(string)
	two := answered(t, s, "ours", `{"input":[{"role":"system","content":"S"},{"id":"m1","role":"user","content":[`+
		`{"type":"input_text","text":"U"}]},{"role":"assistant","content":"A"},{"role":"user","content":"V"}]}`)
	get := func(key, id, query string) (int, any) {
		w := as(s, key, "GET", responsesPath+"/"+id+"/input_items"+query, "")
		return w.Code, parsed(t, w.Body.Bytes())
	}
	code, list := get("ours", id, "")
	if code != 200 || at(list, "object") != "list" || at(list, "data", 0, "content", 0, "text") != "Hi" ||
		at(list, "data", 0, "type") != "message" || at(list, "data", 0, "role") != "user" ||
		at(list, "has_more") != false || at(list, "first_id") != at(list, "data", 0, "id") {
		t.Errorf("%d %v", code, list)
	}
	texts := func(query string) string {
		code, list := get("ours", at(two, "id").(string), query)
		if code != 200 {
			return fmt.Sprint(code, " ", at(list, "error", "param"))
		}
		var said []string
		for _, item := range at(list, "data").([]any) {
			said = append(said, at(item, "content", 0, "type").(string)+" "+at(item, "content", 0, "text").(string))
		}
		return strings.Join(said, "|") + fmt.Sprint(" ", at(list, "has_more"))
	}
	for query, want := range map[string]string{
		"":                            "input_text V|output_text A|input_text U|input_text S false",
		"?order=asc&limit=2":          "input_text S|input_text U true",
		"?order=asc&limit=2&after=m1": "output_text A|input_text V false",
		"?order=up":                   "400 order",
		"?limit=0":                    "400 limit",
		"?limit=x":                    "400 limit",
		"?after=other":                "400 after",
	} {
		if got := texts(query); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
	if code, _ := get("theirs", id, ""); code != 404 {
		t.Errorf("another key: %d", code)
	}
}
