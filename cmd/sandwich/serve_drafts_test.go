package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// volatile are the fields of answers that differ between two equal requests.
var volatile = []string{"id", "created", "created_at", "call_id", "timings", "usage_details", "cached_tokens",
	"prompt_cached_count", "completion_tokens_details", "output_tokens_details", "cache_read_input_tokens",
	"cache_creation_input_tokens", "input_tokens", "accepted_prediction_count", "rejected_prediction_count",
	"item_id", "prompt_progress", "sequence_number", "completed_at"}

// withoutVolatile removes volatile fields and durations from a decoded answer.
func withoutVolatile(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if slices.Contains(volatile, k) || strings.HasSuffix(k, "_duration") {
				delete(v, k)
				continue
			}
			v[k] = withoutVolatile(x)
		}
	case []any:
		for i := range v {
			v[i] = withoutVolatile(v[i])
		}
	}
	return v
}

// answers returns the decoded objects of an answer or of a stream of events or lines.
func answers(t *testing.T, text string) (out []any) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		if !strings.HasPrefix(line, "{") {
			continue // of a stream: an empty line, a comment, the name of an event or the end
		}
		d := json.NewDecoder(bytes.NewReader([]byte(line)))
		d.UseNumber() // so that log probabilities are compared digit by digit
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, withoutVolatile(v))
	}
	return out
}

// draftBodies are requests of every API with the features that drafts must not change.
var draftBodies = []struct{ name, path, body string }{
	{"greedy", "/v1/chat/completions", `{"messages":[{"role":"user","content":"Tell a tale"}],"temperature":0,
		"max_tokens":70}`},
	{"seeded", "/v1/chat/completions", `{"messages":[{"role":"user","content":"Tell a tale"}],"temperature":1,
		"seed":7,"max_tokens":70}`},
	{"choices", "/v1/completions", `{"prompt":"Once upon a time","n":3,"seed":5,"temperature":0.8,"max_tokens":40}`},
	{"stop strings", "/v1/completions", `{"prompt":"Once upon a time","stop":[" king","and the","."],"max_tokens":60,
		"temperature":0}`},
	{"stop string in a stream", "/v1/completions", `{"prompt":"Once upon a time","stop":["and the"],"max_tokens":60,
		"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`},
	{"echo", "/v1/completions", `{"prompt":"Once upon a time there was","echo":true,"logprobs":2,"max_tokens":20,
		"temperature":0}`},
	{"log probabilities", "/v1/chat/completions", `{"messages":[{"role":"user","content":"Tell a tale"}],"seed":3,
		"logprobs":true,"top_logprobs":3,"max_tokens":40}`},
	{"penalties", "/v1/completions", `{"prompt":"the king the king the king","presence_penalty":0.5,"temperature":0,
		"frequency_penalty":0.3,"logit_bias":{"300":-5},"max_tokens":40}`},
	{"schema", "/v1/chat/completions", `{"messages":[{"role":"user","content":"A person"}],"temperature":0,
		"max_tokens":120,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":{"type":"object",
		"properties":{"name":{"type":"string","maxLength":12},"children":{"type":"array","maxItems":3,"items":
		{"enum":["Hansel","Gretel"]}}},"required":["name","children"],"additionalProperties":false}}}}`},
	{"tool", "/v1/chat/completions", `{"messages":[{"role":"user","content":"What time is it?"}],"temperature":0,
		"max_tokens":120,"tool_choice":"required","tools":[{"type":"function","function":{"name":"clock",
		"parameters":{"type":"object","properties":{"city":{"enum":["Paris","Rome"]}},"required":["city"]}}}]}`},
	{"context nearly full", "/v1/completions", `{"prompt":"` + strings.Repeat("the king ", 225) + `","temperature":0}`},
	{"messages", "/v1/messages", `{"messages":[{"role":"user","content":"Tell a tale"}],"temperature":0,
		"max_tokens":50}`},
	{"responses", "/v1/responses", `{"input":"Tell a tale","temperature":0,"max_output_tokens":50,"store":false}`},
	{"ollama", "/api/chat", `{"messages":[{"role":"user","content":"Tell a tale"}],"options":{"temperature":0,
		"num_predict":50},"stream":false}`},
}

// accepted finds the accepted drafted tokens in an answer.
var accepted = regexp.MustCompile(`"accepted_prediction_(tokens|count)":[1-9]`)

// TestServeDrafts compares answers of every API with and without drafts. Each request is sent
// twice, so that the second one is drafted from the answer to the first. The number of drafted
// tokens is fixed because times measured during tests may say that drafts do not pay.
func TestServeDrafts(t *testing.T) {
	plain, drafts := startServe(t, "--speculate", "off"), startServe(t, "--speculate", "ngram=4")
	drafted := map[string]bool{}
	for _, c := range draftBodies {
		_, off, _ := plain.do("POST", c.path, c.body, "")
		want := answers(t, off)
		if len(want) == 0 || accepted.MatchString(off) {
			t.Errorf("%s: without a drafter: %s", c.name, off)
		}
		for range 2 {
			code, text, _ := drafts.do("POST", c.path, c.body, "")
			if got := answers(t, text); code != http.StatusOK || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: status %d\n%v\nwant\n%v", c.name, code, got, want)
			}
			drafted[c.name] = drafted[c.name] || accepted.MatchString(text)
		}
	}
	for _, name := range []string{"greedy", "stop strings", "log probabilities", "responses", "ollama"} {
		if !drafted[name] {
			t.Errorf("%s: no drafted token was accepted", name)
		}
	}
	plain.stop()
	drafts.stop()
}
