package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

func TestVocabulary(t *testing.T) {
	f := &fake{}
	s := New(f, Options{})
	for _, c := range []struct{ path, body, want string }{
		{"/tokenize", `{"content":"ab"}`, `{"count":2,"max_model_len":512,"tokens":[97,98],"token_strs":null}`},
		{"/v1/tokenize", `{"content":"a","add_special":true}`,
			`{"count":2,"max_model_len":512,"tokens":[1,97],"token_strs":null}`},
		{"/tokenize", `{"content":"é","with_pieces":true}`, `{"count":2,"max_model_len":512,` +
			`"tokens":[{"id":195,"piece":[195]},{"id":169,"piece":[169]}],"token_strs":null}`},
		{"/tokenize", `{"content":"","parse_special":false}`,
			`{"count":0,"max_model_len":512,"tokens":[],"token_strs":null}`},
		{"/tokenize", `{"model":"m","prompt":"a","return_token_strs":true}`,
			`{"count":2,"max_model_len":512,"tokens":[1,97],"token_strs":["\u0001","a"]}`},
		{"/tokenize", `{"prompt":"a","add_special_tokens":false}`,
			`{"count":1,"max_model_len":512,"tokens":[97],"token_strs":null}`},
		{"/tokenize", `{` + hiMessages + `,"add_special_tokens":false}`,
			`{"count":2,"max_model_len":512,"tokens":[0,0],"token_strs":null}`},
		{"/detokenize", `{"tokens":[97, 34]}`, `{"content":"a\"","prompt":"a\""}`},
		{"/detokenize", `{"tokens":[]}`, `{"content":"","prompt":""}`},
		{"/apply-template", `{` + hiMessages + `}`, `{"prompt":"<s>hi"}`},
	} {
		w := post(t, s, c.path, c.body)
		if w.Code != 200 || !strings.EqualFold(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d\n%s, want\n%s", c.path, c.body, w.Code, w.Body, c.want)
		}
	}
	if f.request() != nil {
		t.Error("something was generated")
	}
	v := parsed(t, visit(s, "GET", "/props").Body.Bytes())
	if p := at(v, "default_generation_settings"); at(p, "n_ctx") != 512.0 || at(p, "params", "temperature") != 1.0 ||
		at(p, "params", "top_p") != 1.0 || at(v, "total_slots") != 4.0 || at(v, "model_alias") != "tales-6m" ||
		at(v, "chat_template") != "{{ messages }}" || at(v, "bos_token") != "<s>" || at(v, "eos_token") != "" {
		t.Errorf("%v", v)
	}
}

func TestVocabularyRefused(t *testing.T) {
	s := New(&fake{}, Options{})
	for _, c := range []struct{ path, body, param string }{
		{"/tokenize", `{}`, "content"}, {"/tokenize", `{"content":7}`, "content"},
		{"/tokenize", fmt.Sprintf(`{"content":%q}`, strings.Repeat("a", (1<<20)+1)), "content"},
		{"/tokenize", `{"content":"a","with_peices":true}`, "with_peices"}, {"/tokenize", `{"messages":[]}`,
			"messages"},
		{"/detokenize", `{}`, "tokens"}, {"/detokenize", `{"tokens":"a"}`, "tokens"},
		{"/detokenize", `{"tokens":[-1]}`, "tokens"}, {"/detokenize", `{"tokens":[null]}`, "tokens"},
		{"/detokenize", `{"tokens":[1.5]}`, "tokens"}, {"/detokenize", `{"tokens":[4294967296]}`, "tokens"},
		{"/detokenize", `{"tokens":` + many((1<<18)+1, "1") + `}`, "tokens"},
		{"/apply-template", `{"messages":"x"}`, "messages"},
	} {
		w := post(t, s, c.path, c.body)
		if w.Code != 400 || at(parsed(t, w.Body.Bytes()), "error", "param") != c.param {
			t.Errorf("%s %.80s: %d %s", c.path, c.body, w.Code, w.Body)
		}
	}
	failing := New(&fake{err: &api.InvalidError{Param: "tokens", Message: "are none"}}, Options{APIKeys: []string{"k"}})
	for path, body := range map[string]string{"/tokenize": `{"content":"a"}`, "/detokenize": `{"tokens":[1]}`,
		"/apply-template": `{` + hiMessages + `}`} {
		if w := post(t, failing, path, body); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		failing.SetKeys(nil)
		if w := post(t, failing, path, body); w.Code != 400 || !strings.Contains(w.Body.String(), "tokens are none") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		failing.SetKeys([]string{"k"})
	}
	if w := visit(failing, "GET", "/props"); w.Code != http.StatusUnauthorized {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := visit(s, "POST", "/props"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
