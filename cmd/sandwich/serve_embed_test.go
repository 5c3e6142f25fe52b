package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model/synth"
)

// pooledModel writes a small model of random weights.
func pooledModel(t *testing.T, family string) string {
	t.Helper()
	c, ok := synth.Tiny(family)
	if !ok {
		t.Fatalf("no family %s", family)
	}
	c.Hidden, c.Layers, c.Context = 64, 2, 256
	c.Heads, c.KVHeads, c.HeadDim, c.FFN = 2, 2, 32, 128
	path := filepath.Join(t.TempDir(), family+".gguf")
	if err := synth.WriteFile(t.Context(), path, c, synth.Uniform(gguf.F16), 1, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

type embeddingAnswer struct {
	Data []struct {
		Index     int
		Embedding json.RawMessage
	}
	Usage struct {
		Tokens int `json:"total_tokens"`
	}
}

// TestServeEmbeddings checks that the answers to many texts from many clients equal those of single
// texts, that long texts are rejected or truncated, and that chat is rejected by name.
func TestServeEmbeddings(t *testing.T) {
	s := startServe(t, "--model", pooledModel(t, "bert"))
	if !strings.Contains(s.curl, "/v1/embeddings") {
		t.Errorf("it is tried out with %s", s.curl)
	}
	text := func(i int) string { return strings.Repeat("the rain in spain ", i%17) + fmt.Sprint("number ", i) }
	alone := make([]string, 40)
	for i := range alone {
		var a embeddingAnswer
		s.asked("/v1/embeddings", fmt.Sprintf(`{"input":%q,"model":"any"}`, text(i)), &a)
		alone[i] = string(a.Data[0].Embedding)
	}
	var group sync.WaitGroup
	for client := range 4 {
		group.Go(func() {
			var all []string
			for i := range alone {
				all = append(all, text((i+client)%len(alone)))
			}
			input, _ := json.Marshal(all)
			code, body, _ := s.do(http.MethodPost, "/v1/embeddings", fmt.Sprintf(`{"input":%s,"priority":%d}`, input,
				client%2), "")
			var a embeddingAnswer
			if err := json.Unmarshal([]byte(body), &a); err != nil || code != 200 || len(a.Data) != len(alone) {
				t.Errorf("client %d: status %d, %v", client, code, err)
				return
			}
			for i, d := range a.Data {
				if string(d.Embedding) != alone[(i+client)%len(alone)] {
					t.Errorf("client %d: text %d has another vector in a batch", client, i)
				}
			}
		})
	}
	group.Wait()
	var coded embeddingAnswer
	s.asked("/v1/embeddings", `{"input":[[2,7,9,3]],"model":"m","encoding_format":"base64","dimensions":8}`, &coded)
	if raw, err := base64.StdEncoding.DecodeString(strings.Trim(string(coded.Data[0].Embedding), `"`)); err != nil ||
		len(raw) != 32 || coded.Usage.Tokens != 4 {
		t.Errorf("%v: %s", err, coded.Data[0].Embedding)
	}
	long := strings.Repeat("fox ", 300)
	s.asked("/v1/embeddings", fmt.Sprintf(`{"input":["a",%q],"truncate":true}`, long), &coded)
	if len(coded.Data) != 2 || coded.Usage.Tokens != 256+3 {
		t.Errorf("truncated: %d tokens", coded.Usage.Tokens)
	}
	for _, c := range [][3]string{
		{"/v1/embeddings", fmt.Sprintf(`{"input":["a",%q]}`, long), "text 1 has "},
		{"/v1/embeddings", `{"input":[[2],[]]}`, "text 1: the text is empty"},
		{"/v1/embeddings", `{"input":[4096]}`, "outside the vocabulary"},
		{"/v1/embeddings", `{"input":[-1]}`, "outside the vocabulary"},
		{"/v1/embeddings", `{"input":[4294967296]}`, "4294967296, which is not a token id"},
		{"/v1/embeddings", fmt.Sprintf(`{"input":[%s"a"]}`, strings.Repeat(`"a",`, 100_000)), "more than the 2048"},
		{"/v1/embeddings", fmt.Sprintf(`{"input":%q}`, strings.Repeat("fox ", 9000)), "the text has at least 51"},
		{"/v1/embeddings", `{"input":"a","dimensions":65}`, "vectors have 64 dimensions"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}]}`, "the model bert computes " +
			"embeddings and does not generate text: use /v1/embeddings"},
		{"/v1/completions", `{"prompt":"hi"}`, "use /v1/embeddings"},
		{"/v1/messages", `{"messages":[{"role":"user","content":"hi"}],"max_tokens":3}`, "use /v1/embeddings"},
		{"/v1/rerank", `{"query":"a","documents":["b"]}`, "bert: this model makes embeddings and no scores"},
	} {
		if code, body, _ := s.do(http.MethodPost, c[0], c[1], ""); code != 400 || !strings.Contains(body, c[2]) {
			t.Errorf("%s %.40s: status %d: %s", c[0], c[1], code, body)
		}
	}
	s.stop()
}

// TestServeWithoutCopies checks that a bound below one state is reported and that no chat continues
// from a cached state, as it does with a larger bound.
func TestServeWithoutCopies(t *testing.T) {
	const without = "there is no memory for checkpoints: every request is computed from its beginning"
	file := pooledModel(t, "qwen35")
	for room, want := range map[string]bool{"1KiB": false, "1MiB": true} {
		s := startServe(t, "--model", file, "--state-bytes", room)
		var a struct {
			Usage struct {
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		for range 2 {
			s.asked("/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"system","content":%q},{"role":"user",`+
				`"content":"hi"}],"max_tokens":1}`, strings.Repeat("fox ", 40)), &a)
		}
		if got := a.Usage.Details.Cached > 0; got != want {
			t.Errorf("%s: %d tokens were found", room, a.Usage.Details.Cached)
		}
		s.stop() // what it says may come later than what it answers
		if strings.Contains(s.stderr.String(), without) == want {
			t.Errorf("%s: it says %s", room, &s.stderr)
		}
	}
}

// testLongPairs checks that the error for a pair that is too long names the document or the query,
// and that a document is cut only if the query leaves room.
func testLongPairs(t *testing.T, s *served, family string) {
	t.Helper()
	long := strings.Repeat("fox ", 300)
	for _, c := range [][3]string{
		{fmt.Sprintf(`{"query":"a","documents":["b",%q]}`, long), "text 1 has ", `"param":"documents"`},
		{fmt.Sprintf(`{"query":%q,"documents":["b"]}`, long), "the query without a document has ", `"param":"query"`},
		{fmt.Sprintf(`{"query":%q,"documents":["b"],"truncate":true}`, long), "the query without", `"param":"query"`},
	} {
		if code, body, _ := s.do("POST", "/v1/rerank", c[0], ""); code != 400 || !strings.Contains(body, c[1]) ||
			!strings.Contains(body, c[2]) || !strings.Contains(body, "context_length_exceeded") {
			t.Errorf("%s %.40s: status %d: %s", family, c[0], code, body)
		}
	}
	var a struct {
		Results []struct {
			Index int
			Score float64 `json:"relevance_score"`
		}
		Usage struct {
			Tokens int `json:"total_tokens"`
		}
	}
	s.asked("/v1/rerank", fmt.Sprintf(`{"query":"who","documents":[%q,%q],"truncate":"END","top_n":99}`, long, long), &a)
	if len(a.Results) != 2 || a.Usage.Tokens != 2*256 || a.Results[0].Score != a.Results[1].Score ||
		a.Results[0].Index != 0 {
		t.Errorf("%s, truncated: %+v", family, a)
	}
}

// TestServeRerank checks that the scores of pairs are sorted in descending order, and that a model
// that generates rejects both endpoints by name.
func TestServeRerank(t *testing.T) {
	for _, family := range []string{"bert-rerank", "qwen3-rerank"} {
		s := startServe(t, "--model", pooledModel(t, family))
		var a struct {
			Results []struct {
				Index int
				Score float64 `json:"relevance_score"`
			}
		}
		s.asked("/v1/rerank", `{"query":"who hunts","documents":["the fox","the hen","no one"]}`, &a)
		if len(a.Results) != 3 || a.Results[0].Score < a.Results[1].Score || a.Results[1].Score < a.Results[2].Score ||
			a.Results[0].Score == a.Results[2].Score {
			t.Errorf("%s: %+v", family, a)
		}
		if code, body, _ := s.do("POST", "/v1/embeddings", `{"input":"a","dimensions":5}`, ""); code != 400 ||
			!strings.Contains(body, "scores texts and makes no embeddings") ||
			!strings.Contains(body, `"param":"model"`) {
			t.Errorf("%s embeds: status %d: %s", family, code, body)
		}
		testLongPairs(t, s, family)
		s.stop()
	}
	s := startServe(t)
	for path, body := range map[string]string{"/v1/embeddings": `{"input":"a"}`,
		"/v1/rerank": `{"query":"q","documents":["a"]}`} {
		if code, body, _ := s.do("POST", path, body, ""); code != 400 ||
			!strings.Contains(body, "tales-6m-q8_0: this model generates text and cannot return ") ||
			!strings.Contains(body, `"param":"model"`) {
			t.Errorf("%s: status %d: %s", path, code, body)
		}
	}
}
