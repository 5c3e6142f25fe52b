package server

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/server/embedding"
)

// TestEmbeddings checks all forms of input, and numbers as lists and as base64, which OpenAI's
// Python client requests.
func TestEmbeddings(t *testing.T) {
	f := &fake{vector: 3}
	s := New(f, Options{})
	for _, c := range []struct {
		body    string
		vectors [][2]float32
	}{
		{`{"input":"abcd","model":"m"}`, [][2]float32{{4, 1}}},
		{`{"input":["a","abc"],"model":"m","user":"u"}`, [][2]float32{{1, 2}, {3, 2}}},
		{`{"input":[7,8,9],"model":"m"}`, [][2]float32{{3, 1}}},
		{`{"input":[[7],[8,9]],"model":"m","encoding_format":"float"}`, [][2]float32{{1, 2}, {2, 2}}},
		{`{"content":"ab"}`, [][2]float32{{2, 1}}},
	} {
		for _, format := range []string{"", `,"encoding_format":"base64"`} {
			body := c.body
			if !strings.Contains(body, "encoding_format") {
				body = strings.TrimSuffix(body, "}") + format + "}"
			}
			w := post(t, s, "/v1/embeddings", body)
			var answer struct {
				Object, Model string
				Data          []struct {
					Object    string
					Index     int
					Embedding json.RawMessage
				}
				Usage struct {
					Prompt int `json:"prompt_tokens"`
					Total  int `json:"total_tokens"`
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 || answer.Object != "list" ||
				answer.Model != "tales-6m" || len(answer.Data) != len(c.vectors) || answer.Usage.Prompt < 2 ||
				answer.Usage.Total != answer.Usage.Prompt {
				t.Fatalf("%s: status %d, %v: %s", body, w.Code, err, w.Body)
			}
			for i, d := range answer.Data {
				v := vectorOf(t, d.Embedding)
				x, y := float64(c.vectors[i][0]), float64(c.vectors[i][1])
				if d.Index != i || d.Object != "embedding" || len(v) != 3 ||
					math.Abs(float64(v[0])-x/math.Hypot(x, y)) > 1e-6 || math.Abs(float64(v[1])-y/math.Hypot(x,
					y)) > 1e-6 {
					t.Errorf("%s: %s", body, d.Embedding)
				}
			}
		}
	}
	w := post(t, s, "/embeddings", `{"input":"abc","dimensions":1,"truncate":true,"priority":1,"cache_salt":"x"}`)
	if !strings.Contains(w.Body.String(), `"embedding":[1]`) || !f.embedded.Truncate ||
		f.embedded.Class != api.Proactive {
		t.Errorf("%s of %+v", w.Body, f.embedded)
	}
	w = post(t, s, "/v1/embeddings", `{"input":"abc","embd_normalize":-1}`)
	if !strings.Contains(w.Body.String(), `"embedding":[3,1,0]`) {
		t.Errorf("raw: %s", w.Body)
	}
}

// TestOllamaEmbeddings checks both of ollama's endpoints; long texts are truncated by default.
func TestOllamaEmbeddings(t *testing.T) {
	f := &fake{vector: 3}
	s := New(f, Options{})
	w := post(t, s, "/api/embed", `{"model":"m","input":["abc","d"],"dimensions":1,"keep_alive":"5m","options":{}}`)
	if w.Code != 200 || !strings.HasPrefix(w.Body.String(),
		`{"model":"tales-6m","embeddings":[[1],[1]],"total_duration":`) ||
		!strings.HasSuffix(w.Body.String(), `,"prompt_eval_count":4}`) || !f.embedded.Truncate {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	w = post(t, s, "/api/embeddings", `{"model":"m","prompt":"abc","truncate":false}`)
	if w.Code != 200 || w.Body.String() != `{"embedding":[3,1,0]}` || f.embedded.Truncate {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	w = post(t, s, "/api/embed", `{"input":"a","dimensions":9}`)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "vectors have 3 dimensions") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// vectorOf reads a list of numbers, or base64.
func vectorOf(t *testing.T, raw json.RawMessage) (v []float32) {
	t.Helper()
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	b, err := base64.StdEncoding.DecodeString(strings.Trim(string(raw), `"`))
	if err != nil {
		t.Fatal(err)
	}
	for ; len(b) >= 4; b = b[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return v
}

// TestRerank checks the order by score and the fields of Jina's, Cohere's and llama-server's
// clients.
func TestRerank(t *testing.T) {
	f := &fake{vector: 3}
	s := New(f, Options{})
	for path, body := range map[string]string{
		"/v1/rerank": `{"query":"q","documents":["a","ccc","bb"],"model":"m","return_documents":true}`,
		"/v2/rerank": `{"query":"q","documents":[{"text":"a"},{"text":"ccc"},{"text":"bb"}],"return_documents":true}`,
		"/rerank":    `{"query":"q","texts":["a","ccc","bb"],"return_documents":true,"top_n":9}`,
	} {
		w := post(t, s, path, body)
		const want = `"results":[{"index":1,"relevance_score":3,"document":{"text":"ccc"}},` +
			`{"index":2,"relevance_score":2,"document":{"text":"bb"}},{"index":0,"relevance_score":1,` +
			`"document":{"text":"a"}}]}`
		if w.Code != 200 || !strings.HasSuffix(w.Body.String(), want) || f.embedded.Query != "q" || !f.embedded.Rank {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
	w := post(t, s, "/v1/rerank", `{"query":"q","documents":["a","ccc","bb"],"top_n":1}`)
	if !strings.HasSuffix(w.Body.String(), `"results":[{"index":1,"relevance_score":3}]}`) {
		t.Errorf("the best: %s", w.Body)
	}
}

// TestTruncation checks the values of Cohere's and NVIDIA's clients, too.
func TestTruncation(t *testing.T) {
	f := &fake{vector: 3}
	s := New(f, Options{})
	for truncate, want := range map[string]bool{"true": true, `"END"`: true, `"end"`: true, "false": false,
		`"NONE"`: false, "null": false} {
		for path, body := range map[string]string{"/v1/embeddings": `{"input":"a"`,
			"/v1/rerank": `{"query":"q","documents":["a"]`} {
			w := post(t, s, path, body+`,"truncate":`+truncate+`,"normalize":true,"embedding_type":"float"}`)
			if w.Code != 200 || f.embedded.Truncate != want {
				t.Errorf("%s, %s: status %d, %v: %s", path, truncate, w.Code, f.embedded.Truncate, w.Body)
			}
		}
	}
	for body, want := range map[string]bool{`{"prompt":"a"}`: true, `{"prompt":"a","truncate":false}`: false,
		`{"input":"a","truncate":null}`: true} {
		if w := post(t, s, "/api/embeddings", body); w.Code != 200 || f.embedded.Truncate != want {
			t.Errorf("%s: status %d, %v", body, w.Code, f.embedded.Truncate)
		}
	}
}

// TestEmbeddingsRefused checks that invalid requests get status 400 and the name of the field.
func TestEmbeddingsRefused(t *testing.T) {
	s := New(&fake{vector: 3}, Options{})
	many := `["a"` + strings.Repeat(`,"a"`, embedding.MaxTexts) + `]`
	for _, c := range [][3]string{
		{"/v1/embeddings", `{"model":"m"}`, "input is missing"},
		{"/v1/embeddings", `{"input":[]}`, "input is an empty list"},
		{"/v1/embeddings", `{"input":{}}`, "input must be a string, a list"},
		{"/v1/embeddings", `{"input":[1,"a"]}`, "input must be a string, a list"},
		{"/v1/embeddings", `{"input":["a",1]}`, "input must be a string, a list"},
		{"/v1/embeddings", `{"input":[null]}`, "input must be a string, a list"},
		{"/v1/embeddings", `{"input":[1.5]}`, "input contains 1.5, which is not a token id"},
		{"/v1/embeddings", `{"input":[[1],[99999999999]]}`, "input contains 99999999999, which is not a token id"},
		{"/v1/embeddings", `{"input":[[1,"a"]]}`, "input must be a string, a list"},
		{"/v1/embeddings", `{"input":"a","model":7}`, "model must be a string, not a number"},
		{"/v1/embeddings", `{"input":"a","truncate":"START"}`, `truncate must be true or \"END\"`},
		{"/v1/embeddings", `{"input":"a","truncate":""}`, "truncate must be true"},
		{"/v1/embeddings", `{"input":"a","truncate":1}`, "truncate must be true"},
		{"/v1/embeddings", `{"input":"a","normalize":false}`, "normalize is not supported and would change"},
		{"/v1/embeddings", `{"input":"a","output_dtype":"int8"}`, "output_dtype is not supported"},
		{"/v1/embeddings", `{"input":"a","truncation":true}`, "truncation is not supported"},
		{"/v1/embeddings", `{"input":"a","dimensions":-1}`, "dimensions is -1 and must be at least 1"},
		{"/v1/embeddings", `{"input":"a","dimensions":2.5}`, "dimensions must be an integer of 64 bits, not 2.5"},
		{"/v1/embeddings", `{"input":"a","dimensions":9223372036854775808}`, "dimensions must be an integer of 64"},
		{"/v1/embeddings", `{"input":` + many + `}`, fmt.Sprintf("more than the %d elements", embedding.MaxTexts)},
		{"/v1/embeddings", `{"input":"a","dimensions":4}`, "vectors have 3 dimensions"},
		{"/v1/embeddings", `{"input":"a","dimensions":0}`, "dimensions is 0 and must be at least 1"},
		{"/v1/embeddings", `{"input":"a","encoding_format":"hex"}`, `encoding_format is \"hex\"`},
		{"/v1/embeddings", `{"input":"a","dimension":4}`, "did you mean dimensions"},
		{"/v1/rerank", `{"documents":["a"]}`, "query is missing"},
		{"/v1/rerank", `{"query":"q"}`, "documents is missing"},
		{"/v1/rerank", `{"query":"q","documents":[]}`, "documents is an empty list"},
		{"/v1/rerank", `{"query":"q","documents":[1]}`, "documents must be a list of strings"},
		{"/v1/rerank", `{"query":"q","documents":["a"],"top_n":0}`, "top_n is 0"},
		{"/v1/rerank", `{"query":"q","documents":["a"],"top_n":-5}`, "top_n is -5"},
		{"/v1/rerank", `{"query":"q","documents":["a"],"top_k":1}`, "did you mean top_n"},
		{"/v1/rerank", `{"query":"q","documents":["a"],"truncate":"START"}`, "truncate must be true"},
		{"/v1/rerank", `{"query":"q","documents":["a"],"max_tokens_per_doc":9}`, "max_tokens_per_doc is not"},
		{"/v1/rerank", `{"query":"q","documents":` + many + `}`, "documents has more than the"},
		{"/v1/rerank", `{"query":"q","texts":["a",1]}`, "texts must be a list of strings"},
		{"/v1/rerank", `{"query":["q"],"documents":["a"]}`, "query must be a string, not a list"},
		{"/v1/rerank", `{"query":"q","documents":[{"title":"a"}]}`, "documents must be a list of strings or of"},
	} {
		w := post(t, s, c[0], c[1])
		param, _ := at(at(parsed(t, w.Body.Bytes()), "error"), "param").(string)
		if w.Code != 400 || !strings.Contains(w.Body.String(), c[2]) || // what is missing is named, too
			!strings.Contains(c[1]+`"input""query""documents"`, `"`+param+`"`) {
			t.Errorf("%s %.60s: status %d: %s", c[0], c[1], w.Code, w.Body)
		}
	}
	s = New(&fake{err: &api.TooLongError{PromptTokens: 9, Context: 8, Text: true, Of: "text 1"}}, Options{})
	w := post(t, s, "/v1/embeddings", `{"input":["a","b"]}`)
	if want := `"text 1 has 9 tokens and the context holds 8; shorten it, or have it truncated"`; w.Code != 400 ||
		!strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), `"param":"input"`) ||
		!strings.Contains(w.Body.String(), "context_length_exceeded") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
