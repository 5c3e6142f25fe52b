package server

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

// sendAs posts a body with headers, given as names and values.
func sendAs(s http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// TestRoot checks that / reports a running server, without a key and before the model is loaded.
func TestRoot(t *testing.T) {
	url, _ := start(t, nil, Options{APIKeys: []string{"secret"}})
	for method, want := range map[string]string{"GET": "sandwich is running\n", "HEAD": ""} {
		r, err := http.NewRequestWithContext(t.Context(), method, url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || string(text) != want {
			t.Errorf("%s /: status %d %q", method, res.StatusCode, text)
		}
	}
}

// TestFormDeclaredJSON checks that JSON declared as a form, as by curl -d, is accepted where other
// servers accept it, but not from pages of other sites.
func TestFormDeclaredJSON(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{})
	const form = "application/x-www-form-urlencoded"
	generate := "{\n \"prompt\": \"hi\",\n \"stream\": false,\n \"options\": {\n  \"num_predict\": 4\n }\n}\n"
	for _, c := range []struct {
		path, body string
		headers    []string
		want       int
	}{
		{"/api/generate", generate, nil, 200},
		{"/api/generate", strings.ReplaceAll(generate, "\n", ""), nil, 200},
		{"/api/chat", chatOnce, nil, 200},
		{"/api/show", `{"model":"m"}`, nil, 200},
		{"/api/embed", `{"input":"x"}`, nil, 200},
		{"/api/embeddings", `{"prompt":"x"}`, nil, 200},
		{"/tokenize", `{"content":"x"}`, nil, 200},
		{"/v1/tokenize", `{"content":"x"}`, nil, 200},
		{"/api/generate", generate, []string{"User-Agent", "curl/8.5.0", "Accept", "*/*"}, 200},
		{"/api/generate", "prompt=hi", nil, 400},
		{"/api/generate", "%7B%22prompt%22%3A%22hi%22%7D=", nil, 400},
		{"/api/generate", generate, []string{"Origin", "http://evil.example"}, 403},
		{"/api/generate", generate, []string{"Origin", "null"}, 403},
		{"/api/generate", generate, []string{"Origin", "http://example.com"}, 415}, // the server's own
		{"/api/generate", generate, []string{"Sec-Fetch-Site", "cross-site"}, 415},
		{"/api/generate", generate, []string{"Sec-Fetch-Mode", "navigate"}, 415},
		{"/api/generate", generate, []string{"Sec-Fetch-Anything", "x"}, 415},
		{"/v1/chat/completions", chatOnce, nil, 415},
		{"/v1/completions", text(`"n":1`), nil, 415},
		{"/v1/messages", chatOnce, nil, 415},
	} {
		w := sendAs(s, c.path, c.body, append(c.headers, "Content-Type", form)...)
		if w.Code != c.want {
			t.Errorf("%s %q %v: status %d %s, want %d", c.path, c.body, c.headers, w.Code, w.Body, c.want)
		}
	}
	for kind, want := range map[string]int{form + "; charset=UTF-8": 200, "Application/X-WWW-Form-Urlencoded": 200,
		"text/plain": 415, "multipart/form-data; boundary=x": 415, form + "; =": 415} {
		if w := sendAs(s, "/api/generate", generate, "Content-Type", kind); w.Code != want {
			t.Errorf("%s: status %d %s, want %d", kind, w.Code, w.Body, want)
		}
	}
}

func gzipped(t *testing.T, parts ...string) string {
	t.Helper()
	var buf bytes.Buffer
	for _, part := range parts {
		z := gzip.NewWriter(&buf)
		if _, err := io.WriteString(z, part); err != nil {
			t.Fatal(err)
		}
		z.Close()
	}
	return buf.String()
}

// TestContentCodings checks that gzip bodies are accepted, that the limit counts decompressed
// bytes, and that other encodings are refused.
func TestContentCodings(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{MaxBody: 64 << 10})
	zipped := gzipped(t, chatOnce)
	damaged := []byte(zipped)
	damaged[len(damaged)-5] ^= 1
	blanks := func(n int) string { return strings.Repeat(" ", n) }
	for _, c := range []struct {
		name, coding, body string
		want               int
		has                string
	}{
		{"gzip", "gzip", zipped, 200, ""},
		{"old name, upper case", "X-GZIP", zipped, 200, ""},
		{"members", "gzip", gzipped(t, chatOnce[:10], "", chatOnce[10:]), 200, ""},
		{"identity", "identity", chatOnce, 200, ""},
		{"as large as accepted", "gzip", gzipped(t, blanks(64<<10-len(chatOnce))+chatOnce), 200, ""},
		{"too large", "gzip", gzipped(t, blanks(64<<10-len(chatOnce)+1)+chatOnce), 413, "65536 bytes"},
		{"bomb", "gzip", gzipped(t, blanks(32<<20)), 413, "65536 bytes"},
		{"members without end", "gzip", strings.Repeat(gzipped(t, ""), 4<<10), 413, "65536 bytes"},
		{"damaged", "gzip", string(damaged), 400, "cannot be decompressed"},
		{"cut", "gzip", zipped[:len(zipped)-9], 400, "cannot be decompressed"},
		{"not compressed", "gzip", chatOnce, 400, "cannot be decompressed"},
		{"followed by text", "gzip", zipped + "x", 400, "cannot be decompressed"},
		{"empty", "gzip", "", 400, "not valid JSON"},
		{"twice", "gzip, gzip", gzipped(t, zipped), 415, "with gzip"},
		{"zstd", "zstd", chatOnce, 415, "with gzip"},
		{"br", "br", chatOnce, 415, "with gzip"},
		{"deflate", "deflate", chatOnce, 415, "with gzip"},
	} {
		w := sendAs(s, chatPath, c.body, "Content-Type", "application/json", "Content-Encoding", c.coding)
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s: status %d %s, want %d and %q", c.name, w.Code, w.Body, c.want, c.has)
		}
		if (w.Code == 415) != (w.Header().Get("Accept-Encoding") == "gzip") {
			t.Errorf("%s: Accept-Encoding %q", c.name, w.Header().Get("Accept-Encoding"))
		}
	}
	if held := s.run.BodyMemory(); held != 0 {
		t.Errorf("%d bytes of bodies are still held", held)
	}
}

// TestByteOrderMark checks that a mark before the JSON is ignored, and only there.
func TestByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	s := New(&fake{words: []string{"x"}}, Options{})
	for body, want := range map[string]int{mark + chatOnce: 200, mark + mark + chatOnce: 400, chatOnce + mark: 400,
		mark: 400} {
		if w := post(t, s, chatPath, body); w.Code != want {
			t.Errorf("%q: status %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	w := sendAs(s, chatPath, gzipped(t, mark+chatOnce), "Content-Encoding", "gzip")
	if w.Code != 200 {
		t.Errorf("in gzip: status %d %s", w.Code, w.Body)
	}
}

// TestNeutralTypical checks that an unsupported sampler is accepted if it is off.
func TestNeutralTypical(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{})
	for value, want := range map[string]int{"1": 200, "1.0": 200, "null": 200, "0.9": 400} {
		if w := post(t, s, chatPath, chat(`"typical":`+value)); w.Code != want ||
			want == 400 && !strings.Contains(w.Body.String(), `"param":"typical"`) {
			t.Errorf("typical %s: status %d %s, want %d", value, w.Code, w.Body, want)
		}
	}
}

// TestReasoningInHistory checks both names of an assistant's reasoning.
func TestReasoningInHistory(t *testing.T) {
	f := &fake{words: []string{"x"}}
	s := New(f, Options{})
	for fields, want := range map[string]string{
		`"reasoning":"hm"`: "hm", `"reasoning_content":"hm"`: "hm", `"reasoning":null,"reasoning_content":"hm"`: "hm",
		`"reasoning":"hm","reasoning_content":null`: "hm", `"reasoning":"hm","reasoning_content":"hm"`: "hm",
		`"reasoning":{"effort":"low"}`: "", `"reasoning":["hm"]`: "", `"reasoning":7`: "", `"reasoning":null`: "",
	} {
		w := post(t, s, chatPath, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b",`+fields+
			`},{"role":"user","content":"c"}]}`)
		if w.Code != 200 || f.request().Messages[1].Reasoning != want {
			t.Errorf("%s: status %d %s, %+v", fields, w.Code, w.Body, f.request().Messages)
		}
	}
}

// TestToolChoiceByName checks that a string may name a tool.
func TestToolChoiceByName(t *testing.T) {
	g := &calling{}
	s := New(g, Options{})
	flat := `{"input":"x","tools":[{"type":"function","name":"pick"},{"type":"function","name":"none"}],"tool_choice":%s}`
	for _, c := range []struct {
		path, body string
		want       api.ToolChoice
	}{
		{chatPath, chat(twoTools + `,"tool_choice":"pick"`),
			api.ToolChoice{Mode: api.ToolsRequired, Names: []string{"pick"}}},
		{responsesPath, fmt.Sprintf(flat, `"pick"`), api.ToolChoice{Mode: api.ToolsRequired, Names: []string{"pick"}}},
		{responsesPath, fmt.Sprintf(flat, `"none"`), api.ToolChoice{Mode: api.ToolsNone}},
	} {
		w := post(t, s, c.path, c.body)
		if got := g.last; w.Code != 200 || fmt.Sprint(got.ToolChoice) != fmt.Sprint(c.want) {
			t.Errorf("%s: status %d %s, %+v", c.body, w.Code, w.Body, got)
		}
	}
	for _, choice := range []string{`"other"`, `""`, `"Pick"`, `7`} {
		w := post(t, s, chatPath, chat(twoTools+`,"tool_choice":`+choice))
		if w.Code != 400 || !strings.Contains(w.Body.String(), "tool_choice") {
			t.Errorf("%s: status %d %s", choice, w.Code, w.Body)
		}
	}
}
