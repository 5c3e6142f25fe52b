package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestFieldsRefused checks that fields that would be ignored and would change the answer are
// refused by name.
func TestFieldsRefused(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{})
	for field, has := range map[string]string{
		`"guided_regex":"a+"`:                                                "guided_regex",
		`"structured_outputs":{"regex":"a"}`:                                 "has regex, which is not supported",
		`"structured_outputs":{"structural_tag":"{}"}`:                       "has structural_tag",
		`"structured_outputs":{"json":{},"json_object":true,"choice":["a"]}`: "several forms of the answer",
		`"format":"json"`:                                                    "format",
		`"min_tokens":5`:                                                     "min_tokens",
		`"mirostat":2`:                                                       "mirostat",
		`"skip_special_tokens":false`:                                        "skip_special_tokens",
		`"chat_template_kwargs":[1]`:                                         "chat_template_kwargs",
		`"reasoning_effort":"loud"`:                                          "reasoning_effort",
		`"chat_template_kwarg":{}`:                                           "did you mean chat_template_kwargs?",
		`"stop_token_ids":[1]`:                                               "stop_token_ids",
		`"temprature":0`:                                                     "did you mean temperature",
		`"tempreature":0`:                                                    "did you mean temperature?",
		`"Temperature":0`:                                                    "did you mean temperature?",
		`"TEMPERATURE":0`:                                                    "did you mean temperature?",
		`"top-p":1`:                                                          "did you mean top_p?",
		`"topp":1`:                                                           "did you mean top_p?",
		`"max_token":1`:                                                      "did you mean max_tokens?",
		`"maxtokens":1`:                                                      "did you mean max_tokens?",
		`"stpo":"a"`:                                                         "did you mean stop?",
		`"stops":"a"`:                                                        "did you mean stop?",
		`"sede":1`:                                                           "did you mean seed?",
		`"N":2`:                                                              "did you mean n?",
		`"respones_format":{}`:                                               "did you mean response_format?",
		`"gramar":""`:                                                        "did you mean grammar?",
		`"guided_jsn":1`:                                                     "did you mean guided_json?",
		`"repeat_penality":1.1`:                                              "did you mean repeat_penalty?",
		`"tem\u0070rature":0`:                                                "did you mean temperature?",
		`"\u017feed":1`:                                                      "did you mean seed?",
		`"temp\u0000rature":0`:                                               "did you mean temperature?",
		`"num_predict":3`:                                                    "did you mean n_predict?",
	} {
		for path, body := range map[string]string{chatPath: chatOnce, "/v1/completions": `{"prompt":"p"}`} {
			w := post(t, s, path, strings.TrimSuffix(body, "}")+","+field+"}")
			e := at(parsed(t, w.Body.Bytes()), "error")
			m, _ := at(e, "message").(string)
			var named map[string]any
			if err := json.Unmarshal([]byte("{"+field+"}"), &named); err != nil {
				t.Fatal(err)
			}
			if param, _ := at(e, "param").(string); w.Code != 400 || !strings.Contains(m, has) || named[param] == nil {
				t.Errorf("%s %s: status %d %s", path, field, w.Code, w.Body)
			}
		}
	}
	var flood strings.Builder
	for i := range 256 {
		fmt.Fprintf(&flood, `,"field_%d":1`, i)
	}
	if w := post(t, s, chatPath, strings.TrimSuffix(chatOnce, "}")+flood.String()+"}"); w.Code != 400 ||
		!strings.Contains(w.Body.String(), "256 fields") {
		t.Errorf("%d fields: status %d %s", 257, w.Code, w.Body)
	}
}

// TestFieldsAccepted checks that fields of other servers' clients are accepted if they have no
// effect.
func TestFieldsAccepted(t *testing.T) {
	f := &fake{words: []string{"x"}}
	s := New(f, Options{})
	fields := []string{
		`"grammar":""`, `"grammar":null`, `"json_schema":{}`, `"guided_json":null`, `"min_tokens":0`, `"mirostat":0`,
		`"typical_p":1`,
		`"use_beam_search":false`, `"skip_special_tokens":true`, `"chat_template_kwargs":{}`,
		`"add_generation_prompt":true`,
		`"n":1`, `"best_of":1`, `"echo":false`, `"suffix":null`, `"response_format":{"type":"text"}`,
		`"n_predict":-1`, `"tools":[]`,
		`"name":"a"`, `"id":1`, `"m":1`, `"x":1`, `"input":"a"`, `"system":"a"`, `"options":{"num_ctx":1}`,
		`"chat_id":"1"`, `"session_id":"1"`,
		`"template":"x"`, `"user_id":"u"`, `"typical_p":1.0`, `"dry_multiplier":0.0`,
		`"thinking":{"type":"disabled"}`, `"max_new_tokens":5`, `"timeout":3`,
	}
	for name := range strings.FieldsSeq(`
		metadata store function_call reasoning verbosity audio prediction
		prompt_cache_key prompt_cache_retention safety_identifier
		cache_prompt id_slot slot_id n_keep n_discard min_keep t_max_predict_ms timings_per_token
		return_tokens post_sampling_probs response_fields reasoning_format mode keep_alive
		mirostat_tau mirostat_eta dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers
		xtc_threshold dynatemp_exponent length_penalty early_stopping
		spaces_between_special_tokens request_id guided_decoding_backend return_token_ids
		return_tokens_as_token_ids
		provider models transforms route usage`) {
		fields = append(fields, fmt.Sprintf(`%q:1`, name))
	}
	for _, field := range fields {
		for path, body := range map[string]string{chatPath: chatOnce, "/v1/completions": `{"prompt":"p"}`} {
			if w := post(t, s, path, strings.TrimSuffix(body, "}")+","+field+"}"); w.Code != 200 {
				t.Errorf("%s %s: status %d %s", path, field, w.Code, w.Body)
			}
		}
	}
	for body, want := range map[string]int{
		`{"prompt":"p","n_predict":7}`: 7, `{"prompt":"p","n_predict":-1}`: 0, `{"prompt":"p"}`: 16,
		`{"prompt":"p","n_predict":7,"max_tokens":5}`: 5, `{"prompt":"p","max_completion_tokens":3,"max_tokens":5}`: 3,
	} {
		if w := post(t, s, "/v1/completions", body); w.Code != 200 || f.request().MaxTokens != want {
			t.Errorf("%s: status %d, at most %d tokens", body, w.Code, f.request().MaxTokens)
		}
	}
}
