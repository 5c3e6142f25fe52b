package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// wholeFields has bodies with %s in place of an integer for which 2 is valid, by path, with the
// field that an error must name.
var wholeFields = []struct{ path, body, field string }{
	{"/v1/chat/completions", `{"max_tokens":%s,` + hiMessages + `}`, "max_tokens"},
	{"/v1/chat/completions", `{"max_completion_tokens":%s,` + hiMessages + `}`, "max_completion_tokens"},
	{"/v1/chat/completions", `{"n_predict":%s,` + hiMessages + `}`, "n_predict"},
	{"/v1/chat/completions", `{"top_k":%s,` + hiMessages + `}`, "top_k"},
	{"/v1/chat/completions", `{"seed":%s,` + hiMessages + `}`, "seed"},
	{"/v1/chat/completions", `{"n":%s,` + hiMessages + `}`, "n"},
	{"/v1/chat/completions", `{"n":2,"best_of":%s,` + hiMessages + `}`, "best_of"},
	{"/v1/chat/completions", `{"logprobs":true,"top_logprobs":%s,` + hiMessages + `}`, "top_logprobs"},
	{"/v1/chat/completions", `{"priority":%s,` + hiMessages + `}`, "priority"},
	{"/v1/chat/completions", `{"logit_bias":[[%s,1]],` + hiMessages + `}`, "logit_bias"},
	{"/v1/completions", `{"prompt":"x","logprobs":%s}`, "logprobs"},
	{"/v1/completions", `{"prompt":[7,%s]}`, "prompt"},
	{"/v1/completions", `{"prompt":[[7],[7,%s]]}`, "prompt"},
	{"/v1/messages", `{"max_tokens":%s,` + hiMessages + `}`, "max_tokens"},
	{"/v1/messages", `{"max_tokens":1,"top_k":%s,` + hiMessages + `}`, "top_k"},
	{"/v1/responses", `{"input":"x","max_output_tokens":%s}`, "max_output_tokens"},
	{"/v1/responses", `{"input":"x","seed":%s}`, "seed"},
	{"/v1/responses", `{"input":"x","top_logprobs":%s}`, "top_logprobs"},
	{"/v1/embeddings", `{"input":[7,%s]}`, "input"},
	{"/v1/embeddings", `{"input":[[7],[%s]]}`, "input"},
	{"/v1/embeddings", `{"input":"x","dimensions":%s}`, "dimensions"},
	{"/v1/embeddings", `{"input":"x","embd_normalize":%s}`, "embd_normalize"},
	{"/v1/rerank", `{"query":"x","documents":["y"],"top_n":%s}`, "top_n"},
	{"/detokenize", `{"tokens":[7,%s]}`, "tokens"},
	{"/api/chat", `{"stream":false,"options":{"num_predict":%s},` + hiMessages + `}`, "options.num_predict"},
	{"/api/chat", `{"stream":false,"options":{"num_ctx":%s},` + hiMessages + `}`, "options.num_ctx"},
	{"/api/chat", `{"stream":false,"options":{"top_k":%s},` + hiMessages + `}`, "options.top_k"},
	{"/api/generate", `{"stream":false,"prompt":"x","options":{"seed":%s}}`, "options.seed"},
	{"/api/generate", `{"stream":false,"prompt":"x","logprobs":true,"top_logprobs":%s}`, "top_logprobs"},
	{"/api/embed", `{"input":"x","dimensions":%s}`, "dimensions"},
}

// TestWholeNumbers checks that every integer of a request may be written as any number without a
// fraction, and that errors name the field.
func TestWholeNumbers(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{})
	for _, c := range wholeFields {
		for _, number := range []string{"2", "2.0", "20e-1", "0.2E+1"} {
			body := fmt.Sprintf(c.body, number)
			if w := post(t, s, c.path, body); w.Code != http.StatusOK {
				t.Errorf("%s %s: status %d %s", c.path, body, w.Code, w.Body)
			}
		}
		for _, number := range []string{"8.5", "1e-1", "1e999999999", "1e-999999999", `"x"`, "[8]"} {
			body := fmt.Sprintf(c.body, number)
			w := post(t, s, c.path, body)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.field) {
				t.Errorf("%s %s: status %d %s, want a 400 that names %s", c.path, body, w.Code, w.Body, c.field)
			}
		}
	}
	f := &fake{words: []string{"x"}}
	post(t, New(f, Options{}), "/v1/completions", `{"prompt":[1.0,2e1],"max_tokens":4.0,"seed":42.0,"top_k":40.0}`)
	r := f.request()
	if r.MaxTokens != 4 || r.Sampling.Seed != 42 || r.Sampling.TopK != 40 || fmt.Sprint(r.Prompt) != "[1 20]" {
		t.Errorf("read as %+v", r)
	}
}
