package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/metrics"
)

// never is a time after which an event counts as missing, however slow the machine is.
const never = 2 * time.Minute

// fake is a Generator with a scripted answer.
type fake struct {
	words  []string      // the answer, one per token
	delay  time.Duration // before each token
	first  chan struct{} // if not nil, the first token waits for it (a long prefill)
	err    error         // instead of an answer
	endErr error         // after the answer
	ready  error         // result of Ready

	mu       sync.Mutex
	last     *api.Request
	embedded *api.Embedding
	vector   int           // ModelInfo.Vector
	started  chan struct{} // if not nil, receives a value for each Generate
	cancels  atomic.Int64
	running  atomic.Int64
	finished atomic.Int64
}

func (f *fake) Ready() error { return f.ready }

func (f *fake) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	f.mu.Lock()
	f.last = &r
	f.mu.Unlock()
	f.running.Add(1)
	defer f.running.Add(-1)
	if f.started != nil {
		f.started <- struct{}{}
	}
	if f.err != nil {
		return api.Result{}, f.err
	}
	gone := func(err error) (api.Result, error) {
		f.cancels.Add(1)
		return api.Result{}, err
	}
	if f.first != nil {
		select {
		case <-f.first:
		case <-ctx.Done():
			return gone(ctx.Err())
		}
	}
	out, end := f.words, api.FinishStop
	if r.MaxTokens > 0 && r.MaxTokens < len(out) {
		out, end = out[:r.MaxTokens], api.FinishLength
	}
	for _, w := range out {
		if f.delay > 0 {
			select {
			case <-time.After(f.delay):
			case <-ctx.Done():
				return gone(ctx.Err())
			}
		}
		t := api.Token{Text: w}
		if r.Logprobs {
			t.Piece, t.Logprob = w, -0.5
			for i := range r.TopLogprobs {
				t.Top = append(t.Top, api.TokenLogprob{Piece: w + strings.Repeat("x", i), Logprob: float32(-i)})
			}
		}
		if err := emit(t); err != nil {
			return gone(err)
		}
	}
	if f.endErr != nil {
		return api.Result{}, f.endErr
	}
	f.finished.Add(1)
	return api.Result{Finish: end, PromptTokens: 7, CachedTokens: 3, Tokens: len(out)}, nil
}

// Embed returns for each text a vector of its length and the number of texts.
func (f *fake) Embed(_ context.Context, r api.Embedding) (v api.Vectors, err error) {
	f.mu.Lock()
	f.embedded = &r
	f.mu.Unlock()
	for _, text := range r.Texts {
		v.Rows = append(v.Rows, []float32{float32(len(text)), float32(len(r.Texts)), 0})
		v.Tokens += len(text)
	}
	for _, ids := range r.Prompts {
		v.Rows = append(v.Rows, []float32{float32(len(ids)), float32(len(r.Prompts)), 0})
		v.Tokens += len(ids)
	}
	return v, f.err
}

// Prompt returns a token for each byte of the messages or the text.
func (f *fake) Prompt(_ context.Context, r *api.Request) ([]int32, error) {
	if r.Prompt != nil {
		return r.Prompt, f.err
	}
	n := len(r.Text)
	for _, m := range r.Messages {
		n += len(m.Content)
	}
	return make([]int32, n), f.err
}

func (f *fake) Render(_ context.Context, r *api.Request) (string, error) {
	return "<s>" + r.Messages[0].Content, f.err
}

// Encode returns a token for each byte, and one more before them if special.
func (f *fake) Encode(_ context.Context, text string, special, _ bool) (ids []int32, err error) {
	if special {
		ids = append(ids, 1)
	}
	for i := range len(text) {
		ids = append(ids, int32(text[i]))
	}
	return ids, f.err
}

func (f *fake) Decode(_ context.Context, ids []int32) (text string, err error) {
	for _, id := range ids {
		text += f.Piece(id)
	}
	return text, f.err
}

func (f *fake) Piece(id int32) string { return string([]byte{byte(id)}) }

func (f *fake) Model() generation.ModelInfo {
	return generation.ModelInfo{ID: "tales-6m", Created: time.Unix(1700000000, 0), Context: 512, Parallel: 4,
		Vector:   f.vector,
		Template: "{{ messages }}", BOS: "<s>"}
}

func (f *fake) Metrics() []metrics.Metric {
	return []metrics.Metric{{Name: "sandwich_switches_total", Help: "Hot switches.", Counter: true, Value: 3}}
}

func (f *fake) request() *api.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// start serves g on a socket with Serve.
func start(t *testing.T, g generation.Generator, o Options) (url string, srv *Server) {
	t.Helper()
	srv = New(g, o)
	ts := httptest.NewUnstartedServer(http.NotFoundHandler())
	startOn(t, ts.Listener, srv)
	return "http://" + ts.Listener.Addr().String(), srv
}

func post(t *testing.T, h http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w
}

// chunks reads a whole stream and returns its objects; it must end with [DONE].
func chunks(t *testing.T, r io.Reader) (out []map[string]any) {
	t.Helper()
	sc := bufio.NewScanner(r)
	done := false
	for sc.Scan() {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		switch {
		case !ok:
			continue
		case done:
			t.Fatalf("data after the end: %s", data)
		case string(data) == "[DONE]":
			done = true
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		out = append(out, m)
	}
	if err := sc.Err(); err != nil || !done {
		t.Fatalf("the stream ended early: %v after %d chunks", err, len(out))
	}
	return out
}

// at selects a value of decoded JSON by field names and indexes.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func parsed(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// eventually waits for a condition that another goroutine establishes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < never; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}
