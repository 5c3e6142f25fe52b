package modelrouter

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/modelcache"
	"sandwich/runtime/server"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/server/status"
)

// fake is a model whose answers are its name. Its load waits for step, unless nil.
type fake struct {
	generation.Generator
	name string
	step chan struct{}
	half chan struct{} // if not nil, is closed when the load is at one half
	err  error
}

func (f *fake) Open(context.Context) (modelcache.Opened, error) { return f, nil }
func (f *fake) Need() modelcache.Memory                         { return modelcache.Memory{0: 1} }
func (f *fake) Used() modelcache.Memory                         { return f.Need() }
func (f *fake) Ready() error                                    { return nil }
func (f *fake) Close()                                          {}

func (f *fake) Load(ctx context.Context, progress func(float64)) (modelcache.Instance, error) {
	progress(.5)
	if f.half != nil {
		close(f.half)
	}
	if f.step != nil {
		select {
		case <-f.step:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return f, f.err
}

func (f *fake) Generate(_ context.Context, _ api.Request, emit func(api.Token) error) (api.Result, error) {
	return api.Result{Finish: api.FinishStop, Tokens: 1}, emit(api.Token{Text: f.name})
}

func (f *fake) Embed(context.Context, api.Embedding) (api.Vectors, error) {
	return api.Vectors{Rows: [][]float32{{float32(len(f.name))}}}, nil
}
func (f *fake) Prompt(context.Context, *api.Request) ([]int32, error) { return []int32{1}, nil }
func (f *fake) Render(context.Context, *api.Request) (string, error)  { return f.name, nil }
func (f *fake) Encode(context.Context, string, bool, bool) ([]int32, error) {
	return make([]int32, len(f.name)), nil
}
func (f *fake) Decode(context.Context, []int32) (string, error) { return f.name, nil }
func (f *fake) Piece(int32) string                              { return f.name }
func (f *fake) Metrics() []metrics.Metric {
	return []metrics.Metric{{Name: "sandwich_engine_requests_total", Counter: true, Value: 1}}
}

// serve returns a server over models of which one fits at a time.
func serve(t *testing.T, o server.Options, limit int, fakes ...*fake) (*Router, *httptest.Server) {
	t.Helper()
	c := modelcache.New(modelcache.Budget{Total: 1}, limit, nil)
	r := New(c, nil)
	var list []*Model
	for _, f := range fakes {
		list = append(list, &Model{Info: generation.ModelInfo{ID: f.name, Context: 100, Vector: 1},
			Entry: c.Add(f, false)})
	}
	r.Set(list)
	s := server.New(nil, o)
	s.ReadyFor(r)
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		ts.Close()
		c.Close()
	})
	return r, ts
}

// ask returns the status and the body of a request.
func ask(t *testing.T, ts *httptest.Server, key, path, body string) (int, string) {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(t.Context(), method, ts.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := ts.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// bodies has a request of each API. %M stands for the model.
var bodies = map[string]string{
	"/v1/chat/completions":      `{%M"messages":[{"role":"user","content":"x"}]}`,
	"/v1/completions":           `{%M"prompt":"x"}`,
	"/v1/responses":             `{%M"input":"x"}`,
	"/v1/messages":              `{%M"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`,
	"/v1/messages/count_tokens": `{%M"messages":[{"role":"user","content":"x"}]}`,
	"/api/chat":                 `{%M"stream":false,"messages":[{"role":"user","content":"x"}]}`,
	"/api/generate":             `{%M"stream":false,"prompt":"x"}`,
	"/api/embed":                `{%M"input":"x"}`,
	"/api/show":                 `{%M"name":""}`,
	"/v1/embeddings":            `{%M"input":"x"}`,
	"/v1/rerank":                `{%M"query":"x","documents":["y"]}`,
	"/tokenize":                 `{%M"content":"x"}`,
	"/detokenize":               `{%M"tokens":[1]}`,
	"/apply-template":           `{%M"messages":[{"role":"user","content":"x"}]}`,
}

// TestEveryAPI checks that every API answers with the model that a request names, by its name, an
// alias or with ollama's tag, and with the first model for a request without a name.
func TestEveryAPI(t *testing.T) {
	r, ts := serve(t, server.Options{}, 4, &fake{name: "one"}, &fake{name: "second"})
	r.table.Load().list[1].Info.Aliases = []string{"two"}
	r.Set(r.table.Load().list)
	for path, body := range bodies {
		if path == "/api/show" {
			continue // it requires a name
		}
		results := map[string]string{}
		for _, name := range []string{"", "one", "second", "two", "second:latest"} {
			field := ""
			if name != "" {
				field = `"model":"` + name + `",`
			}
			status, text := ask(t, ts, "", path, strings.ReplaceAll(body, "%M", field))
			if status != http.StatusOK {
				t.Errorf("%s of %s: %d %s", path, name, status, text)
			}
			// The answer has the name of the model, or its length as a number of tokens or vector.
			results[name] = "one"
			if strings.Contains(text, "second") || strings.Contains(text, `"count":6`) ||
				strings.Contains(text, "[6]") {
				results[name] = "second"
			}
		}
		if path == "/v1/messages/count_tokens" {
			continue // equal for both
		}
		for name, want := range map[string]string{"": "one", "one": "one", "second": "second", "two": "second",
			"second:latest": "second"} {
			if results[name] != want {
				t.Errorf("%s: the model %q is %s, want %s", path, name, results[name], want)
			}
		}
	}
	for query, want := range map[string]string{"": "one", "?model=two": "second"} {
		if _, text := ask(t, ts, "", "/props"+query, ""); !strings.Contains(text, `"model_alias":"`+want+`"`) {
			t.Errorf("/props%s: %s", query, text)
		}
	}
	if _, text := ask(t, ts, "", "/v1/models/two", ""); !strings.Contains(text, `"id":"second"`) {
		t.Error(text)
	}
}

// TestUnknown checks the errors of all APIs for models that do not exist or that the key may not
// use: they are the same, have the form of the API, and name no other model.
func TestUnknown(t *testing.T) {
	r, ts := serve(t, server.Options{APIKeys: []string{"a", "b"}}, 4, &fake{name: "public"}, &fake{name: "secret"})
	list := r.table.Load().list
	list[1].Keys = map[generation.Key]bool{{1}: true}
	for path, body := range bodies {
		var texts []string
		for _, name := range []string{"secret", "absent"} {
			status, text := ask(t, ts, "a", path, strings.ReplaceAll(body, "%M", `"model":"`+name+`",`))
			if status != http.StatusNotFound || strings.Contains(text, "public") {
				t.Errorf("%s: %d %s", path, status, text)
			}
			switch {
			case strings.HasPrefix(path, "/api/"):
				if !strings.HasPrefix(text, `{"error":"unknown model`) {
					t.Errorf("%s: %s", path, text)
				}
			case strings.HasPrefix(path, "/v1/messages"):
				if !strings.Contains(text, `"not_found_error"`) {
					t.Errorf("%s: %s", path, text)
				}
			case !strings.Contains(text, `"model_not_found"`):
				t.Errorf("%s: %s", path, text)
			}
			texts = append(texts, strings.ReplaceAll(text, name, ""))
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: a secret model gives %s, an absent one %s", path, texts[0], texts[1])
		}
	}
	for _, path := range []string{"/v1/models", "/api/tags", "/api/ps"} {
		if _, text := ask(t, ts, "a", path, ""); strings.Contains(text, "secret") {
			t.Errorf("%s: %s", path, text)
		}
	}
	if status, _ := ask(t, ts, "a", "/v1/models/secret", ""); status != http.StatusNotFound {
		t.Errorf("/v1/models/secret: %d", status)
	}
	if status, _ := ask(t, ts, "a", "/props?model=secret", ""); status != http.StatusNotFound {
		t.Errorf("/props: %d", status)
	}
	list[0].Keys = map[generation.Key]bool{}
	if status, text := ask(t, ts, "a", "/tokenize", `{"content":"x"}`); status != http.StatusNotFound {
		t.Errorf("no model for the key: %d %s", status, text)
	}
}

// TestStates checks the states that the lists report, and the label of metrics.
func TestStates(t *testing.T) {
	_, ts := serve(t, server.Options{}, 4, &fake{name: "one"}, &fake{name: "two"})
	ask(t, ts, "", "/tokenize", `{"model":"two","content":"x"}`)
	if _, text := ask(t, ts, "", "/v1/models", ""); !strings.Contains(text, `"state":"unloaded"},{"id":"two"`) ||
		!strings.Contains(text, `"state":"loaded"}]`) {
		t.Error(text)
	}
	if _, text := ask(t, ts, "", "/api/tags", ""); !strings.Contains(text, `"one"`) || !strings.Contains(text, `"two"`) {
		t.Error(text)
	}
	if _, text := ask(t, ts, "", "/api/ps", ""); strings.Contains(text, `"one"`) || !strings.Contains(text, `"two"`) {
		t.Error(text)
	}
	_, text := ask(t, ts, "", "/metrics", "")
	for _, line := range []string{`sandwich_engine_requests_total{model="two"} 1`, "sandwich_model_loads_total 1",
		`sandwich_model_state{model="one",state="unloaded"} 1`} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

// live is a fake that reports a state.
type live struct{ fake }

func (l *live) Status() status.Live {
	return status.Live{Seconds: 7, Tokens: status.Tokens{Generated: int64(len(l.name))}}
}

func (l *live) Open(context.Context) (modelcache.Opened, error) { return l, nil }

func (l *live) Load(context.Context, func(float64)) (modelcache.Instance, error) { return l, nil }

// TestStatus checks the states and plans that the endpoints of the page report for each model, and
// that a key sees its models only.
func TestStatus(t *testing.T) {
	c := modelcache.New(modelcache.Budget{}, 1, nil)
	defer c.Close()
	slow := &fake{name: "slow", step: make(chan struct{}), half: make(chan struct{})}
	named := func(name string, s modelcache.Source, keys ...string) *Model {
		m := &Model{Info: generation.ModelInfo{ID: name, Context: 100}, Entry: c.Add(s, false),
			Plan: func() *status.Plan { return &status.Plan{Name: name + ".plan"} }}
		for _, k := range keys {
			if m.Keys == nil {
				m.Keys = map[generation.Key]bool{}
			}
			m.Keys[sha256.Sum256([]byte(k))] = true
		}
		return m
	}
	r := New(c, nil)
	r.Set([]*Model{named("one", &live{fake{name: "one"}}), named("slow", slow), named("secret", &live{fake{
		name: "secret"}}, "b")})
	r.table.Load().list[1].Plan = nil
	serve := func(o server.Options) *httptest.Server {
		s := server.New(nil, o)
		s.ReadyFor(r)
		ts := httptest.NewServer(s)
		t.Cleanup(ts.Close)
		return ts
	}
	closed := serve(server.Options{APIKeys: []string{"a", "b"}})
	open := serve(server.Options{APIKeys: []string{"a", "b"}, OpenMetrics: true})
	expect := func(ts *httptest.Server, key, path string, status int, has ...string) {
		t.Helper()
		code, text := ask(t, ts, key, path, "")
		if code != status {
			t.Errorf("%s with key %q: %d %s", path, key, code, text)
		}
		for _, want := range has {
			absent, no := strings.CutPrefix(want, "! ")
			if no == strings.Contains(text, absent) {
				t.Errorf("%s with key %q: %s, want %s", path, key, text, want)
			}
		}
	}
	const at = "/v1/sandwich/"
	ask(t, closed, "a", "/tokenize", `{"model":"one","content":"x"}`)
	expect(closed, "a", at+"status", 200, `{"model":"one","state":"loaded","models":[{"id":"one","state":"loaded"},`+
		`{"id":"slow","state":"unloaded"}]`, `"generated":3`, `"uptime_s":7`)
	expect(closed, "b", at+"status?model=secret", 200, `"model":"secret","state":"unloaded"`, `"lanes":[]`, `"queue":[]`)
	expect(closed, "b", at+"plan?model=secret", 200, `"plan":"secret.plan"`)
	for _, path := range []string{"status?model=secret", "plan?model=secret", "status?model=absent"} {
		expect(closed, "a", at+path, 404, "model_not_found", "! one")
		expect(open, "a", at+path, 404, "model_not_found")
		expect(open, "", at+path, 404, "model_not_found")
	}
	expect(closed, "", at+"status", 401)
	expect(open, "", at+"status", 200, `"model":"one"`, "! secret")
	expect(open, "b", at+"status?model=secret", 200, `"id":"secret"`)
	expect(open, "wrong", at+"status?model=secret", 404)
	expect(closed, "a", at+"plan?model=slow", 404, "not_supported")
	expect(closed, "a", "/metrics", 200, `{model="one",state="loaded"} 1`, "! secret")
	expect(closed, "b", "/metrics", 200, `{model="one",state="loaded"} 1`, `{model="secret",state="unloaded"} 1`)
	expect(open, "", "/metrics", 200, `{model="secret",state="unloaded"} 1`)
	var loads sync.WaitGroup
	loads.Go(func() { ask(t, closed, "a", "/tokenize", `{"model":"slow","content":"x"}`) })
	<-slow.half
	expect(closed, "a", at+"status?model=slow", 200, `"model":"slow","state":"loading","loading":0.5`)
	close(slow.step)
	loads.Wait()
	expect(closed, "a", at+"status?model=slow", 200, `"state":"loaded"`)
}

// TestWaiting checks that a streaming client sees the progress of the load that it waits for, that
// further clients are refused with Retry-After when too many wait, and that a failed load gives a
// status without details.
func TestWaiting(t *testing.T) {
	slow := &fake{name: "slow", step: make(chan struct{}), half: make(chan struct{})}
	broken := &fake{name: "broken", err: errors.New("/private/path is damaged")}
	r, ts := serve(t, server.Options{Heartbeat: 20 * time.Millisecond}, 1, slow, broken)
	var failed error
	r.table.Load().list[1].Failed = func(err error) { failed = err }
	seen := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		const body = `{"model":"slow","stream":true,"messages":[{"role":"user","content":"x"}]}`
		res, err := ts.Client().Post(ts.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			close(seen)
			return
		}
		defer res.Body.Close()
		told, text := false, ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); text += lines.Text() + "\n" {
			if lines.Text() == ": loading the model, 50 %" && !told {
				told = true
				close(seen)
			}
		}
		if !told {
			t.Error("the progress of the load is not reported")
			close(seen)
		}
		if !strings.Contains(text, `"content":"slow"`) || !strings.Contains(text, "[DONE]") {
			t.Error(text)
		}
	})
	<-slow.half
	res, err := ts.Client().Post(ts.URL+"/tokenize", "application/json", strings.NewReader(`{"content":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
		t.Errorf("a second request: %s, Retry-After %q", res.Status, res.Header.Get("Retry-After"))
	}
	<-seen
	close(slow.step)
	all.Wait()
	status, text := ask(t, ts, "", "/tokenize", `{"model":"broken","content":"x"}`)
	if status != http.StatusServiceUnavailable || strings.Contains(text, "private") || failed == nil {
		t.Errorf("a load that fails: %d %s, reported %v", status, text, failed)
	}
}
