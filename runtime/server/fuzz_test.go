package server

import (
	"encoding/json"
	"math"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/server/request"
)

// FuzzBodies checks that every body is refused in the right format or becomes a request within all
// limits.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		chatOnce, chatStream,
		`{"messages":[{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"n":1,"seed":-3}`,
		`{"messages":[{"role":"user","content":"x"}],"logprobs":true,"top_logprobs":20,"stop":["a","b"],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":"p","temperature":1e-45,"top_p":0.1,"min_p":1,"top_k":40,"max_tokens":3,"logprobs":5,"stop":"s"}`,
		`{"prompt":[1,2,3],"repetition_penalty":1.2,"frequency_penalty":-2,"presence_penalty":2,"service_tier":"flex"}`,
		`{"prompt":[[7]],"echo":false,"suffix":"","best_of":1,"ignore_eos":true,"logit_bias":{}}`,
		`{"messages":[{"role":"user","content":"x"}],"temprature":0}`, `{"prompt":"p","grammar":"x","Grammar":"y"}`,
		`{"prompt":"p","n_predict":-1,"cache_salt":"s","mirostat":0.0,"frobnicate":{"a":[1]}}`,
		`{"prompt":"p","\ud800":1,"N":2}`,
		`{"prompt":["a",[1]],"n":3,"echo":true,"logit_bias":[[1,false]],"max_tokens":0}`,
		`{"input":[{"type":"reasoning","summary":[{"text":"x"}]},{"type":"custom_tool_call","name":"a","input":"b"}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool"}]}`,
		`{"prompt":"p","raw":true,"format":{"type":"object"},"options":{"num_predict":-1,"stop":["a"],"mirostat":1}}`,
		`{"input":"x","tools":[{"type":"custom","name":"a"}],"tool_choice":{"type":"allowed_tools","mode":"auto"}}`,
		`{"prompt":["\ud800"],"max_tokens":1e2}`, `{"prompt":[1e3]}`, `[`, `null`, `{"messages":[{}]}`,
		`{"stop":[[[[[[`, `{"messages":[{"role":"user","content":[{"type":"tool_result"}]}],"stop_sequences":["a"]}`,
		`{"system":[{"type":"text","text":"s"}],"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{chatPath, "/v1/completions", messagesPath, responsesPath, "/api/chat",
			"/api/generate"} {
			g := &fake{words: []string{"x"}}
			w := serve(New(g, Options{}), "POST", path, string(body))
			if w.Code != 200 && (w.Code != 400 || !json.Valid(w.Body.Bytes())) {
				t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
			}
			if n := g.finished.Load(); n > request.MaxChoices {
				t.Fatalf("%s: %d choices", path, n)
			}
			if r := g.last; r != nil {
				checkLimits(t, r)
			}
		}
	})
}

// checkLimits fails unless a request is within the limits of the package.
func checkLimits(t *testing.T, r *api.Request) {
	t.Helper()
	s := r.Sampling
	for _, v := range []float32{s.Temperature, s.TopP, s.MinP, s.RepeatPenalty, s.FrequencyPenalty, s.PresencePenalty} {
		if math.IsNaN(float64(v)) || v < -2 || v > 10 {
			t.Fatalf("sampling %+v", s)
		}
	}
	if s.RepeatPenalty <= 0 || s.TopK < 0 || r.MaxTokens < 0 || r.TopLogprobs < 0 || len(s.Bias) > 1024 ||
		r.TopLogprobs > request.MaxTopLogprobs || len(r.Stop) > request.MaxStops {
		t.Fatalf("request %+v", r)
	}
	for _, stop := range r.Stop {
		if stop == "" || len(stop) > request.MaxStopBytes {
			t.Fatalf("stop string of %d bytes", len(stop))
		}
	}
	for _, id := range r.Prompt {
		if id < 0 {
			t.Fatalf("token id %d", id)
		}
	}
}
