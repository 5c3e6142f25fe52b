package server

import (
	"testing"

	"sandwich/runtime/api"
)

// Every name of a format yields the same request.
func TestFormats(t *testing.T) {
	f := &fake{words: []string{"x"}}
	s := New(f, Options{})
	for fields, want := range map[string]api.Format{
		`"response_format":{"type":"text"}`:        {},
		`"response_format":{"type":"json_object"}`: {Kind: api.JSONObject, Param: "response_format"},
		`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"null"}}}`: {
			Kind: api.JSONSchema, Text: `{"type":"null"}`, Param: "response_format"},
		`"response_format":{"type":"json_object","schema":{"type":"null"}}`: {
			Kind: api.JSONSchema, Text: `{"type":"null"}`, Param: "response_format"},
		`"json_schema":{"type":"null"}`:       {Kind: api.JSONSchema, Text: `{"type":"null"}`, Param: "json_schema"},
		`"guided_json":"{\"type\":\"null\"}"`: {Kind: api.JSONSchema, Text: `{"type":"null"}`, Param: "guided_json"},
		`"grammar":"root ::= \"a\""`:          {Kind: api.GBNF, Text: `root ::= "a"`, Param: "grammar"},
		`"guided_choice":["a","\""]`: {Kind: api.GBNF, Text: `root ::= "\U00000061" | "\U00000022"`,
			Param: "guided_choice"},
		`"structured_outputs":null`: {},
		`"structured_outputs":{"json":{"type":"null"},"regex":null,"disable_any_whitespace":true}`: {
			Kind: api.JSONSchema, Text: `{"type":"null"}`, Param: "structured_outputs"},
		`"structured_outputs":{"json_object":true}`: {Kind: api.JSONObject, Param: "structured_outputs"},
		`"structured_outputs":{"choice":["a"]}`: {Kind: api.GBNF, Text: `root ::= "\U00000061"`,
			Param: "structured_outputs"},
		`"structured_outputs":{"grammar":"root ::= \"a\""}`: {Kind: api.GBNF, Text: `root ::= "a"`,
			Param: "structured_outputs"},
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
			body := chat(fields)
			if path != "/v1/chat/completions" {
				body = text(fields)
			}
			if w := post(t, s, path, body); w.Code != 200 {
				t.Errorf("%s: status %d %s", body, w.Code, w.Body)
				continue
			}
			if f.last.Format != want {
				t.Errorf("%s: %+v, want %+v", body, f.last.Format, want)
			}
		}
	}
}
