package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/request"
)

func serve(h http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	h.ServeHTTP(w, r)
	return w
}

func many(n int, item string) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }

const hiMessages = `"messages":[{"role":"user","content":"hi"}]`

// chat and text return bodies of the two endpoints with the given fields.
func chat(fields string) string { return `{` + hiMessages + `,` + fields + `}` }
func text(fields string) string { return `{"prompt":"p",` + fields + `}` }

// badBodies are refused bodies with the parameter at fault and a part of the error.
var badBodies = []struct{ path, body, param, has string }{
	{"chat", ``, "", "not valid JSON"},
	{"chat", `{`, "", "not valid JSON"},
	{"chat", `{"messages":[],}`, "", "not valid JSON"},
	{"chat", chat(`"seed":1`) + "x", "", "not valid JSON"},
	{"chat", "{\"user\":\"\xff\"}", "", "UTF-8"},
	{"chat", `[]`, "", "must be a JSON object, not a list"},
	{"chat", `"x"`, "", "must be a JSON object"},
	{"chat", `null`, "messages", "is missing"},
	{"chat", `{}`, "messages", "is missing"},
	{"chat", `{"messages":[]}`, "messages", "is empty"},
	{"chat", `{"messages":"hi"}`, "messages", "must be a list"},
	{"chat", `{"messages":[1]}`, "messages[0]", "must be an object"},
	{"chat", `{"messages":[null]}`, "messages[0]", "must be an object"},
	{"chat", `{"messages":[{"role":"user"}]}`, "messages[0].content", "is missing"},
	{"chat", `{"messages":[{"role":"user","content":{}}]}`, "messages[0].content.type", "is missing"},
	{"chat", `{"messages":[{"role":"user","content":5}]}`, "messages[0].content", "must be a string or a list"},
	{"chat", `{"messages":[{"role":"user","content":[5]}]}`, "messages[0].content[0]", "must be an object"},
	{"chat", `{"messages":[{"role":"user","content":[{}]}]}`, "messages[0].content[0].type", "is missing"},
	{"chat", `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages[0].content[0].text",
		"is missing"},
	{"chat", `{"messages":[{"role":"user","content":[{"type":"text","text":1}]}]}`, "messages[0].content[0].text",
		"must be a string"},
	{"chat", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`,
		"messages[0].content[0].type", "only text"},
	{"chat", chat(`"tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}]`), "tools[1]", "which tools[0] also has"},
	{"chat", chat(`"tools":[{"type":"web_search"}]`), "tools[0].type", "only functions"},
	{"chat", chat(`"tools":[{"function":{"name":"f"}}],"tool_choice":{"function":{"name":"g"}}`), "tool_choice",
		"unknown tool"},
	{"chat", chat(`"tool_choice":"required"`), "tool_choice", "tools is empty"},
	{"chat", chat(`"tool_choice":"perhaps"`), "tool_choice", "use auto"},
	{"chat", chat(`"continue_final_message":true`), "continue_final_message", "last message of the assistant"},
	{"chat", `{"messages":` + many(request.MaxMessages+1, `{"role":"user","content":""}`) + `}`, "messages", "more than"},
	{"chat", chat(`"temperature":"hot"`), "temperature", "must be a number, not a string"},
	{"chat", chat(`"temperature":1e999`), "temperature", "must be a number"},
	{"chat", chat(`"temperature":-0.1`), "temperature", "between 0 and 2"},
	{"chat", chat(`"temperature":1e308`), "temperature", "between 0 and 2"},
	{"chat", chat(`"temperature":NaN`), "", "not valid JSON"},
	{"chat", chat(`"temperature":Infinity`), "", "not valid JSON"},
	{"chat", chat(`"top_p":1.5`), "top_p", "between"},
	{"chat", chat(`"min_p":-1`), "min_p", "between"},
	{"chat", chat(`"top_k":-2`), "top_k", "between"},
	{"chat", chat(`"top_k":1.5`), "top_k", "must be an integer"},
	{"chat", chat(`"max_tokens":0`), "max_tokens", "between 1"},
	{"chat", chat(`"max_tokens":-5`), "max_tokens", "between 1"},
	{"chat", chat(`"max_tokens":1e30`), "max_tokens", "must be an integer"},
	{"chat", chat(`"max_tokens":99999999999`), "max_tokens", "between 1"},
	{"chat", chat(`"max_completion_tokens":0`), "max_completion_tokens", "between 1"},
	{"chat", chat(`"repetition_penalty":0`), "repetition_penalty", "between"},
	{"chat", chat(`"repeat_penalty":-1`), "repeat_penalty", "between"},
	{"chat", chat(`"presence_penalty":3`), "presence_penalty", "between"},
	{"chat", chat(`"n":0`), "n", "between 1 and 128"},
	{"chat", chat(`"n":129`), "n", "between 1 and 128"},
	{"chat", chat(`"seed":"x"`), "seed", "must be an integer"},
	{"chat", chat(`"seed":1e400`), "seed", "must be an integer"},
	{"chat", chat(`"stream":"yes"`), "stream", "must be true or false"},
	{"chat", chat(`"stream_options":{"include_usage":true}`), "stream_options", "only allowed if stream"},
	{"chat", chat(`"stream":true,"stream_options":{"include_usage":1}`), "stream_options.include_usage",
		"true or false"},
	{"chat", chat(`"stream":true,"stream_options":7`), "stream_options", "must be an object"},
	{"chat", chat(`"stop":5`), "stop", "a string or a list"},
	{"chat", chat(`"stop":[1]`), "stop", "a string or a list"},
	{"chat", chat(`"stop":[null]`), "stop", "a string or a list"},
	{"chat", chat(`"stop":""`), "stop", "empty"},
	{"chat", chat(`"stop":["a",""]`), "stop", "empty"},
	{"chat", chat(`"stop":` + many(10_000, `"a"`)), "stop", "more than the 64"},
	{"chat", chat(`"stop":"` + strings.Repeat("a", 2000) + `"`), "stop", "2000 bytes"},
	{"chat", chat(`"logprobs":1`), "logprobs", "true or false"},
	{"chat", chat(`"top_logprobs":3`), "top_logprobs", "requires logprobs"},
	{"chat", chat(`"logprobs":true,"top_logprobs":21`), "top_logprobs", "between 0 and 20"},
	{"chat", chat(`"logit_bias":{"5":101}`), "logit_bias", "from -100 to 100"},
	{"chat", chat(`"logit_bias":{"5":"x"}`), "logit_bias", "from -100 to 100"},
	{"chat", chat(`"logit_bias":{"the":1}`), "logit_bias", "which is not a token id"},
	{"chat", chat(`"logit_bias":{"-1":1}`), "logit_bias", "which is not a token id"},
	{"chat", chat(`"logit_bias":[[5]]`), "logit_bias", "list of pairs"},
	{"chat", chat(`"logit_bias":7`), "logit_bias", "list of pairs"},
	{"chat", chat(`"logit_bias":` + many(1025, `[5,1]`)), "logit_bias", "more than the 1024"},
	{"chat", chat(`"echo":true`), "echo", "is supported by /v1/completions only"},
	{"chat", chat(`"tools":[{}]`), "tools[0].function", "is missing"},
	{"chat", chat(`"functions":[{}]`), "functions", "not supported"},
	{"chat", chat(`"response_format":{"type":"xml"}`), "response_format", "not supported"},
	{"chat", chat(`"response_format":{"type":"json_schema"}`), "response_format", "lacks json_schema.schema"},
	{"chat", chat(`"response_format":{"type":"json_object"},"grammar":"root ::= \"a\""`), "grammar", "send one of them"},
	{"chat", chat(`"response_format":[]`), "response_format", ""},
	{"chat", chat(`"modalities":["audio"]`), "modalities", "not supported"},
	{"chat", chat(`"user":{}`), "user", "must be a string"},
	{"chat", chat(`"enable_thinking":5`), "enable_thinking", "must be true or false"},
	{"text", `{}`, "prompt", "is missing"},
	{"text", `{"prompt":5}`, "prompt", "a string or a list"},
	{"text", `{"prompt":[]}`, "prompt", "is empty"},
	{"text", `{"prompt":[[]]}`, "prompt", "is empty"},
	{"text", `{"prompt":["a",5]}`, "prompt", "a string or a list"},
	{"text", `{"prompt":[[1],[]]}`, "prompt", "is empty"},
	{"text", `{"prompt":["a",[2,-1]]}`, "prompt", "-1"},
	{"text", `{"prompt":` + many(129, `"a"`) + `}`, "prompt", "more than the 128"},
	{"text", `{"prompt":["a","b"],"n":65}`, "prompt", "ask for 130 answers"},
	{"text", text(`"max_tokens":0`), "max_tokens", "between 1"},
	{"text", `{"prompt":[1,"a"]}`, "prompt", "a string or a list"},
	{"text", `{"prompt":[1,null]}`, "prompt", "a string or a list"},
	{"text", `{"prompt":[1.5]}`, "prompt", "a string or a list"},
	{"text", `{"prompt":[99999999999]}`, "prompt", "a string or a list"},
	{"text", `{"prompt":[1,-2]}`, "prompt", "-2"},
	{"text", text(`"logprobs":true`), "logprobs", "must be an integer"},
	{"text", text(`"logprobs":21`), "logprobs", "between"},
	{"text", text(`"suffix":"x"`), "suffix", "not supported"},
	{"text", text(`"best_of":3`), "best_of", "leave it out"},
}

// Every refusal is a 400 in OpenAI's format that names the parameter.
func TestBadBodies(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{})
	for _, c := range badBodies {
		path := map[string]string{"chat": "/v1/chat/completions", "text": "/v1/completions"}[c.path]
		w := post(t, s, path, c.body)
		show := c.body[:min(len(c.body), 120)]
		if w.Code != 400 {
			t.Errorf("%s: status %d %s", show, w.Code, w.Body)
			continue
		}
		e := at(parsed(t, w.Body.Bytes()), "error")
		param, _ := at(e, "param").(string)
		if m, _ := at(e, "message").(string); param != c.param || !strings.Contains(m, c.has) ||
			at(e, "type") != "invalid_request_error" {
			t.Errorf("%s: %s", show, w.Body)
		}
	}
}

func TestGeneratorErrors(t *testing.T) {
	const body = `{"messages":[{"role":"user","content":"hi"}]`
	for _, c := range []struct {
		err    error
		status int
		has    string
		retry  string
	}{
		{&api.QueueFullError{RetryAfter: 2500 * time.Millisecond}, 429, `"code":"queue_full"`, "3"},
		{&api.UnavailableError{Reason: "every PU is gone"}, 503, `"message":"every PU is gone"`, "10"},
		{&api.LostDeviceError{Device: "cuda:0", Err: io.EOF}, 503, `"message":"device cuda:0 was lost, and the cores`, "1"},
		{&api.QueueFullError{}, 429, `rate_limit_error`, "1"},
		{fmt.Errorf("engine: %w", &api.TooLongError{PromptTokens: 5000, MaxTokens: 10, Context: 4096}), 400,
			"prompt is too long: 5000 tokens > 4096 maximum (context_length_exceeded)", ""},
		{&api.TooLongError{PromptTokens: 4000, MaxTokens: 100, Context: 4096}, 400,
			"input length and max_tokens exceed context limit: 4000 + 100 > 4096", ""},
		{&api.TooLongError{PromptTokens: 9000, Context: 4096, AtLeast: true}, 400,
			"prompt is too long: 9000 tokens > 4096 maximum", ""},
		{&api.InvalidError{Param: "prompt", Message: "holds an id that is not in the vocabulary"}, 400,
			`"param":"prompt"`, ""},
		{api.ErrClosed, 503, "shutting_down", ""},
		{errors.New("boom"), 500, `"type":"server_error"`, ""},
	} {
		for _, stream := range []string{"}", `,"stream":true}`} {
			w := post(t, New(&fake{err: c.err}, Options{}), "/v1/chat/completions", body+stream)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) ||
				w.Header().Get("Retry-After") != c.retry {
				t.Errorf("%v: status %d, retry %q, %s", c.err, w.Code, w.Header().Get("Retry-After"), w.Body)
			}
		}
	}
	// After the first token the status was sent; the error is the last event.
	w := post(t, New(&fake{words: []string{"a"}, endErr: errors.New("boom")}, Options{}), "/v1/chat/completions",
		body+`,"stream":true}`)
	if w.Code != 200 || !strings.HasSuffix(w.Body.String(), `"param":null,"code":null}}`+"\n\n") ||
		strings.Contains(w.Body.String(), "[DONE]") {
		t.Errorf("broken stream: %d %s", w.Code, w.Body)
	}
}

// TestNotReady requests the health of a server whose Generator accepts no requests.
func TestNotReady(t *testing.T) {
	s := New(&fake{ready: &api.UnavailableError{Reason: `no "PU" is left`}}, Options{})
	if w := serve(s, "GET", "/health", ""); w.Code != 503 ||
		w.Body.String() != `{"status":"unavailable","reason":"no \"PU\" is left"}` {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
