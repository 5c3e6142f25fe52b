package server

import (
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

func TestChatStream(t *testing.T) {
	f := &fake{words: []string{"Once", "", " \"upon\"\n", "a time\u2028"}}
	w := post(t, New(f, Options{}), "/v1/chat/completions",
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`)
	if got := w.Header().Get("Content-Type"); w.Code != 200 || got != "text/event-stream" {
		t.Fatalf("status %d, type %q: %s", w.Code, got, w.Body)
	}
	got := chunks(t, w.Body)
	text := ""
	for i, c := range got {
		if at(c, "object") != "chat.completion.chunk" || at(c, "id") != at(got[0], "id") ||
			at(c, "model") != "tales-6m" {
			t.Fatalf("chunk %d: %v", i, c)
		}
		usage, has := c["usage"]
		if last := i == len(got)-1; !has || (usage != nil) != last {
			t.Fatalf("usage of chunk %d of %d: %v", i, len(got), usage)
		}
		if s, ok := at(c, "choices", 0, "delta", "content").(string); ok {
			text += s
		}
	}
	if want := strings.Join(f.words, ""); text != want {
		t.Fatalf("text %q, want %q", text, want)
	}
	if at(got[0], "choices", 0, "delta", "role") != "assistant" {
		t.Fatalf("first chunk %v", got[0])
	}
	if end := got[len(got)-2]; at(end, "choices", 0, "finish_reason") != "stop" || len(at(end, "choices", 0,
		"delta").(map[string]any)) != 0 {
		t.Fatalf("last choice %v", end)
	}
	u := got[len(got)-1]
	if len(at(u, "choices").([]any)) != 0 || at(u, "usage", "prompt_tokens") != 7.0 || at(u, "usage",
		"completion_tokens") != 4.0 ||
		at(u, "usage", "total_tokens") != 11.0 || at(u, "usage", "prompt_tokens_details", "cached_tokens") != 3.0 {
		t.Fatalf("usage chunk %v", u)
	}
}

func TestStreamWithoutUsage(t *testing.T) {
	w := post(t, New(&fake{words: []string{"a"}}, Options{}), "/v1/completions", `{"prompt":"x","stream":true}`)
	for _, c := range chunks(t, w.Body) {
		if _, has := c["usage"]; has || at(c, "object") != "text_completion" {
			t.Fatalf("chunk %v", c)
		}
	}
}

func TestChatWhole(t *testing.T) {
	f := &fake{words: []string{"a", "b", "c"}}
	w := post(t, New(f, Options{}), "/v1/chat/completions",
		`{"messages":[{"role":"user","content":"hi"}],"max_tokens":2,"logprobs":true,"top_logprobs":2}`)
	v := parsed(t, w.Body.Bytes())
	if at(v, "object") != "chat.completion" || at(v, "choices", 0, "message", "content") != "ab" ||
		at(v, "choices", 0, "message", "role") != "assistant" || at(v, "choices", 0, "finish_reason") != "length" ||
		at(v, "usage", "completion_tokens") != 2.0 {
		t.Fatalf("answer %s", w.Body)
	}
	lp := at(v, "choices", 0, "logprobs", "content", 1)
	if at(lp, "token") != "b" || at(lp, "logprob") != -0.5 || at(lp, "bytes", 0) != 98.0 || at(lp, "top_logprobs", 1,
		"logprob") != -1.0 {
		t.Fatalf("logprobs %v", lp)
	}
}

func TestCompletionLogprobs(t *testing.T) {
	f := &fake{words: []string{"a", "bc", "d"}}
	body := `{"prompt":[1,2,3],"logprobs":2,"max_tokens":3`
	v := parsed(t, post(t, New(f, Options{}), "/v1/completions", body+`}`).Body.Bytes())
	lp := at(v, "choices", 0, "logprobs")
	if !reflect.DeepEqual(at(lp, "text_offset"), []any{0.0, 1.0, 3.0}) || !reflect.DeepEqual(at(lp, "tokens"),
		[]any{"a", "bc", "d"}) ||
		at(lp, "top_logprobs", 1, "bcx") != -1.0 || at(v, "choices", 0, "text") != "abcd" {
		t.Fatalf("logprobs %v", lp)
	}
	if r := f.request(); r.Chat() || !reflect.DeepEqual(r.Prompt, []int32{1, 2, 3}) || r.TopLogprobs != 2 {
		t.Fatalf("request %+v", r)
	}
	var offsets []any
	for _, c := range chunks(t, post(t, New(f, Options{}), "/v1/completions", body+`,"stream":true}`).Body) {
		if o := at(c, "choices", 0, "logprobs", "text_offset", 0); o != nil {
			offsets = append(offsets, o)
		}
	}
	if !reflect.DeepEqual(offsets, []any{0.0, 1.0, 3.0}) {
		t.Fatalf("offsets in the stream %v", offsets)
	}
}

// TestRequestFields checks that every field reaches the Generator, in the forms that clients use.
func TestRequestFields(t *testing.T) {
	f := &fake{words: []string{"x"}}
	w := post(t, New(f, Options{}), "/v1/chat/completions", `{
		"messages": [ {"role":"developer","content":"S"}, {"role":"user","name":"Ann","content":[ {"type":"text","text":"A"}, {"type":"text","text":"B"} ]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":""}}]},
			{"role":"tool","content":"T","tool_call_id":"1"}],
		"max_completion_tokens": 9, "max_tokens": 5, "temperature": 0, "top_p": 0.5, "min_p": 0.1, "top_k": -1, "seed": -1,
		"repetition_penalty": 1.1, "presence_penalty": -2, "frequency_penalty": 2, "stop": ["a",
			"b"], "ignore_eos": true,
		"service_tier": "flex", "n": 1, "user": "u", "tools": [], "response_format": {"type":"text"}, "modalities": ["text"],
		"logit_bias": {}, "unknown": {"deeply": [1, 2]}, "parallel_tool_calls": true, "stream": false, "stream_options": null}`)
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	want := &api.Request{
		Messages: []api.Message{
			{Role: "system", Content: "S"}, {Role: "user", Content: "A\nB"},
			{Role: "assistant", Calls: []api.ToolCall{{ID: "1", Name: "f", Arguments: "{}"}}},
			{Role: "tool", Content: "T", CallID: "1", Name: "f"},
		},
		Sampling: api.Sampling{
			TopP: .5, MinP: .1, RepeatPenalty: 1.1, FrequencyPenalty: 2, PresencePenalty: -2, Seed: math.MaxUint64,
		},
		Stop: []string{"a", "b"}, IgnoreEOS: true, MaxTokens: 9, Class: api.Proactive, Priority: 1,
	}
	f.request().Queued, f.request().Progress, f.request().Warnings = nil, nil, nil // not compared
	if got := f.request(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}

	post(t, New(f, Options{}), "/v1/completions", `{"prompt":["p"],"stop":"s"}`)
	drawn := f.request().Sampling.Seed // a random seed
	want = &api.Request{
		Text: "p", Stop: []string{"s"}, MaxTokens: 16,
		Sampling: api.Sampling{Temperature: 1, TopP: 1, RepeatPenalty: 1, Seed: drawn},
	}
	f.request().Queued, f.request().Progress, f.request().Warnings = nil, nil, nil
	if got := f.request(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	if post(t, New(f, Options{}), "/v1/completions", `{"prompt":"p"}`); f.request().Sampling.Seed == drawn {
		t.Fatalf("two requests without a seed got the same, %d", drawn)
	}
	post(t, New(f, Options{}), "/v1/completions", `{"prompt":[ [4, 5] ], "max_tokens": 1}`)
	if got := f.request(); !reflect.DeepEqual(got.Prompt, []int32{4, 5}) {
		t.Fatalf("got %+v", got)
	}
}

func TestModelsHealthAndMethods(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{})
	for _, c := range []struct {
		method, path string
		status       int
		has          string
	}{
		{"GET", "/health", 200, `{"status":"ok"}`},
		{"HEAD", "/health", 200, ""},
		{"POST", "/health", 405, `"code":"method_not_allowed"`},
		{"GET", "/v1/models", 200, `"id":"tales-6m","object":"model"`},
		{"GET", "/v1/models/tales-6m", 200, `"max_model_len":512`},
		{"GET", "/v1/models/other", 404, `"code":"model_not_found"`},
		{"DELETE", "/v1/models/tales-6m", 405, "accepts GET"},
		{"GET", "/v1/chat/completions", 405, "accepts POST, not GET"},
		{"HEAD", "/v1/completions", 405, ""},
		{"PUT", "/v1/completions", 405, "accepts POST"},
		{"GET", "/", 200, "sandwich is running\n"},
		{"HEAD", "/", 200, ""},
		{"POST", "/", 405, `"code":"method_not_allowed"`},
		{"GET", "/nothing", 404, `"code":"not_found"`},
		{"POST", "/v1/images", 404, `"type":"invalid_request_error"`},
	} {
		w := serve(s, c.method, c.path, "")
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s %s: status %d %s", c.method, c.path, w.Code, w.Body)
		}
		if c.status == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
		if c.status >= 400 && w.Body.Len() > 0 {
			if e := at(parsed(t, w.Body.Bytes()), "error", "message"); e == nil {
				t.Errorf("%s %s: no error object in %s", c.method, c.path, w.Body)
			}
		}
	}
}

func TestAPIKeys(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{APIKeys: []string{"sk-one", "sk-two"}})
	for header, ok := range map[string]bool{
		"": false, "Bearer": false, "Bearer ": false, "Bearer sk-on": false, "Bearer sk-one2": false,
		"Basic sk-one": false,
		"sk-one":       false, "Bearer sk-one": true, "bearer  sk-two": true,
	} {
		for _, path := range []string{"/v1/models", "/metrics", "/nothing"} {
			w := serve(s, "GET", path, header)
			if (w.Code != http.StatusUnauthorized) != ok {
				t.Errorf("%s with %q: status %d", path, header, w.Code)
			}
		}
		if w := serve(s, "GET", "/health", header); w.Code != 200 {
			t.Errorf("/health with %q: status %d", header, w.Code)
		}
	}
}

// A list of keys without a valid key locks the server; it does not open it.
func TestBlankAPIKeys(t *testing.T) {
	s := New(&fake{}, Options{APIKeys: []string{""}})
	for _, header := range []string{"", "Bearer", "Bearer "} {
		if w := serve(s, "GET", "/v1/models", header); w.Code != http.StatusUnauthorized {
			t.Errorf("with %q: status %d", header, w.Code)
		}
	}
}

func TestMetrics(t *testing.T) {
	s := New(&fake{words: []string{"a", "b"}}, Options{})
	post(t, s, "/v1/completions", `{"prompt":"x"}`)
	post(t, s, "/v1/completions", `{"prompt":3}`)
	serve(s, "GET", "/scan/1", "")
	serve(s, "GET", "/scan/2", "")
	text := serve(s, "GET", "/metrics", "").Body.String()
	for _, want := range []string{
		`sandwich_http_requests_total{path="/v1/completions",code="200"} 1`,
		`sandwich_http_requests_total{path="/v1/completions",code="400"} 1`,
		`sandwich_http_requests_total{path="other",code="404"} 2`,
		"# TYPE sandwich_switches_total counter\nsandwich_switches_total 3\n",
		"sandwich_completion_tokens_total 2\n", "sandwich_prompt_tokens_total 7\n",
		`sandwich_time_to_first_token_seconds_bucket{class="reactive",model="tales-6m",le="+Inf"} 1`,
		`sandwich_time_between_tokens_seconds_count{class="reactive",model="tales-6m"} 1` + "\n",
		"sandwich_http_requests_in_flight 0\n", "sandwich_http_body_bytes 0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "# TYPE sandwich_http_requests_total") != 1 {
		t.Errorf("one header a name, please:\n%s", text)
	}
}

// TestUsageOfDrafts checks that usage counts drafted tokens where there are any.
func TestUsageOfDrafts(t *testing.T) {
	f := &timedFake{fake{words: []string{"a", "b", "c"}}}
	for _, n := range []int{1, 3} {
		body := fmt.Sprintf(`{"prompt":"x","n":%d}`, n)
		u := parsed(t, post(t, New(f, Options{}), "/v1/completions", body).Body.Bytes())
		if at(u, "usage", "completion_tokens") != float64(3*n) ||
			at(u, "usage", "completion_tokens_details", "accepted_prediction_tokens") != float64(2*n) ||
			at(u, "usage", "completion_tokens_details", "rejected_prediction_tokens") != float64(3*n) {
			t.Errorf("%d choices: usage %v", n, at(u, "usage"))
		}
	}
	u := parsed(t, post(t, New(&f.fake, Options{}), "/v1/completions", `{"prompt":"x"}`).Body.Bytes())
	if usage, _ := at(u, "usage").(map[string]any); usage["completion_tokens_details"] != nil {
		t.Errorf("usage without drafts: %v", usage)
	}
}

// TestUsageOfDraftsElsewhere checks the counts of drafted tokens in the APIs whose formats have no
// field of their own for them: responses have them in output_tokens_details, ollama's answers after
// their other counts, and messages have none. Without drafts they are absent.
func TestUsageOfDraftsElsewhere(t *testing.T) {
	f := &timedFake{fake{words: []string{"a", "b", "c"}}}
	for path, c := range map[string]struct {
		body               string
		accepted, rejected []any
	}{
		"/v1/responses": {`{"model":"m","input":"x"}`,
			[]any{"usage", "output_tokens_details", "accepted_prediction_tokens"},
			[]any{"usage", "output_tokens_details", "rejected_prediction_tokens"}},
		"/api/generate": {`{"model":"m","prompt":"x","stream":false}`,
			[]any{"accepted_prediction_count"}, []any{"rejected_prediction_count"}},
		"/api/chat": {`{"model":"m","messages":[{"role":"user","content":"x"}],"stream":false}`,
			[]any{"accepted_prediction_count"}, []any{"rejected_prediction_count"}},
	} {
		with := parsed(t, post(t, New(f, Options{}), path, c.body).Body.Bytes())
		if at(with, c.accepted...) != 2.0 || at(with, c.rejected...) != 3.0 {
			t.Errorf("%s: %v", path, with)
		}
		without := post(t, New(&f.fake, Options{}), path, c.body).Body.String()
		if strings.Contains(without, "_prediction_") {
			t.Errorf("%s without drafts: %s", path, without)
		}
	}
	text := post(t, New(f, Options{}), "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user",
		"content":"x"}]}`).Body.String()
	if strings.Contains(text, "prediction") || !strings.Contains(text, `"output_tokens":3`) {
		t.Errorf("/v1/messages: %s", text)
	}
}
