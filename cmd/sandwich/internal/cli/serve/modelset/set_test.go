package modelset

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/runtime/demo"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/mem"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/modelcache"
	"sandwich/runtime/server"
	"sandwich/runtime/session"
)

var mixed = flag.Int("mixed", 0, "requests of TestMixed in random order, such as 500; 0: 200 in groups of a model")

// models writes models to a folder: two that generate text, one of embeddings and one of scores.
func models(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "tales.gguf"), demo.Model())
	for i, preset := range []string{"llama-tiny", "bert-tiny", "bert-rerank-tiny"} {
		write(t, filepath.Join(dir, preset+".gguf"), synthetic(t, preset, uint64(i)))
	}
	return dir
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// synthetic returns a model with random weights.
func synthetic(t *testing.T, preset string, seed uint64) []byte {
	t.Helper()
	type key struct {
		preset string
		seed   uint64
	}
	if data, made := made.Load(key{preset, seed}); made {
		return data.([]byte)
	}
	c, err := synth.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = synth.Write(context.Background(), gguf.NewWriter(&out), c, synth.Uniform(gguf.Q8_0), seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	made.Store(key{preset, seed}, out.Bytes())
	return out.Bytes()
}

var made sync.Map // models by preset and seed

// options returns the options of a set over a catalog.
func options(t *testing.T, path string) Options {
	t.Helper()
	var f modelflags.Flags
	f.Wants = modelflags.ForBoth
	c := &cobra.Command{}
	f.Add(c)
	var v modelflags.Service
	v.AddService(c.Flags())
	if err := c.ParseFlags([]string{"--threads", "1"}); err != nil {
		t.Fatal(err)
	}
	v.Parallel, v.Queue = 4, 64
	return Options{Path: path, Session: f, Sizes: v.Sizes, Notice: func(text string) { t.Log(text) },
		Prefixes: func(string) *disk.Store { return nil },
		Accept:   func(*session.Session) error { return nil },
		ReadKeys: func(path string) ([]string, error) {
			data, err := os.ReadFile(path)
			return strings.Fields(string(data)), err
		},
		Stage: func(string, float64) {}}
}

// catalogOf writes a catalog of models to a folder.
func catalogOf(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "models.yaml")
	write(t, path, []byte(text))
	return path
}

func open(t *testing.T, o Options) *Set {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// handler returns a server of a set.
func handler(s *Set) http.Handler {
	h := server.New(nil, server.Options{APIKeys: s.Keys()})
	h.ReadyFor(s.Router())
	return h
}

// ask returns the parts of an answer that do not depend on the time or on the cache.
func ask(t *testing.T, h http.Handler, path, body string) string {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	data, _ := io.ReadAll(w.Body)
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		t.Errorf("%s: %v: %s", path, err, data)
	}
	out := fmt.Sprint(w.Code)
	for _, name := range []string{"choices", "content", "message", "response", "data", "embeddings", "results",
		"tokens", "error"} {
		out += " " + string(object[name])
	}
	return out
}

// question is a request with its model.
type question struct{ model, path, body string }

// questions returns different requests, among them several for each model.
func questions() (list []question) {
	add := func(model, path, format string, a ...any) {
		list = append(list, question{model, path, fmt.Sprintf(`{"model":"`+model+`",`+format+"}", a...)})
	}
	for i := range 5 {
		for _, m := range []string{"tales", "llama"} {
			say := strings.Repeat("word and ", i+1)
			add(m, "/v1/chat/completions", `"messages":[{"role":"user","content":"%s"}],"max_tokens":4,"seed":%d`, say, i)
			add(m, "/v1/completions", `"prompt":"%s","max_tokens":5,"temperature":0,"priority":"proactive"`, say)
			add(m, "/v1/messages", `"messages":[{"role":"user","content":"%s"}],"max_tokens":3,"temperature":0`, say)
			add(m, "/api/generate", `"prompt":"%s","stream":false,"options":{"num_predict":3,"temperature":0}`, say)
			add(m, "/tokenize", `"content":"%s"`, say)
		}
		add("embed", "/v1/embeddings", `"input":["a","%s"]`, strings.Repeat("b ", i))
		add("embed", "/api/embed", `"input":"%s"`, strings.Repeat("c ", i+1))
		add("rank", "/v1/rerank", `"query":"q%d","documents":["a","b c"]`, i)
	}
	return list
}

// memoryWatch checks at every change of the memory in use that it is within a budget and covers
// what is allocated.
func memoryWatch(t *testing.T, budget int64) func(modelcache.Memory) {
	base := mem.Total()
	return func(used modelcache.Memory) {
		if n := used.Total(); n > budget {
			t.Errorf("%d bytes are in use, the budget is %d", n, budget)
		}
		if n := mem.Total() - base; n > used.Total() {
			t.Errorf("%d bytes are allocated, but %d counted", n, used.Total())
		}
	}
}

const entries = `
models:
  - {name: tales, model: tales.gguf, context: 128}
  - {name: llama, model: llama-tiny.gguf, context: 128, class: proactive}
  - {name: embed, model: bert-tiny.gguf, context: 64}
  - {name: rank, model: bert-rerank-tiny.gguf, context: 64}
`

// TestMixed checks that a server whose memory has room for two of four models answers mixed
// requests as servers of a single model do, without errors, and that its memory stays within the
// budget at every moment.
func TestMixed(t *testing.T) {
	if raceEnabled {
		t.Skip("kernels are slow in race builds; runtime/engine tests engines that share the cores in them")
	}
	dir := models(t)
	list := questions()
	want := map[question]string{}
	var largest, second int64
	for _, m := range []struct{ name, file string }{{"tales", "tales"}, {"llama", "llama-tiny"}, {"embed", "bert-tiny"},
		{"rank", "bert-rerank-tiny"}} {
		context := 128
		if m.name == "embed" || m.name == "rank" {
			context = 64
		}
		alone := fmt.Sprintf("models: [{name: %s, model: %s.gguf, context: %d}]", m.name, m.file, context)
		s, err := Open(options(t, catalogOf(t, dir, alone)))
		if err != nil {
			t.Fatal(err)
		}
		h := handler(s)
		for _, q := range list {
			if q.model == m.name {
				if want[q] = ask(t, h, q.path, q.body); !strings.HasPrefix(want[q], "200 ") {
					t.Fatal(q, want[q])
				}
			}
		}
		switch n := s.cache.Counts().Used; {
		case n > largest:
			largest, second = n, largest
		case n > second:
			second = n
		}
		s.Close()
	}
	budget := largest + second + 12<<20
	o := options(t, catalogOf(t, dir, fmt.Sprintf("memory: %dB\n%s", budget, entries)))
	o.Observe = memoryWatch(t, budget)
	s := open(t, o)
	h := handler(s)
	rng := rand.New(rand.NewPCG(1, 2))
	order := make(chan question, 1000)
	go func() {
		defer close(order)
		if *mixed > 0 {
			for range *mixed {
				order <- list[rng.IntN(len(list))]
			}
			return
		}
		for group := range 5 {
			for i := 0; i < 40; {
				q := list[rng.IntN(len(list))]
				if q.model == []string{"tales", "embed", "llama", "rank"}[group%4] || i%20 == 19 {
					order <- q
					i++
				}
			}
		}
	}()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for q := range order {
				if got := ask(t, h, q.path, q.body); got != want[q] {
					t.Errorf("%s %s: %s, want %s", q.path, q.body, got, want[q])
				}
			}
		})
	}
	all.Wait()
	n := s.cache.Counts()
	if n.Loads < 3 || n.Unloads < 2 || n.Failed > 0 {
		t.Errorf("%+v", n)
	}
	t.Logf("%+v", n)
}

// TestReload checks what a reload of the catalog keeps, loads and removes, and that a catalog that
// is not valid changes nothing.
func TestReload(t *testing.T) {
	dir := models(t)
	write(t, filepath.Join(dir, "keys"), []byte("secret"))
	const tales = "  - {name: tales, model: tales.gguf, context: 128, load: start}\n"
	path := catalogOf(t, dir, "models:\n"+tales+"  - {name: embed, model: bert-tiny.gguf, context: 64}\n")
	s := open(t, options(t, path))
	states := func() (out string) {
		for _, m := range s.Router().Models([32]byte{}) {
			out += fmt.Sprintf("%s=%s%v ", m.ID, m.State, m.Aliases)
		}
		return out
	}
	if got := states(); got != "tales=loaded[] embed=unloaded[] " {
		t.Error(got)
	}
	reload := func(text, want string) {
		t.Helper()
		write(t, path, []byte(text))
		if _, err := s.reload(); err != nil {
			t.Fatal(err)
		}
		if got := states(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	reload("aliases: {story: tales}\nmodels:\n"+tales, "tales=loaded[story] ")
	if n := s.cache.Counts(); n.Loads != 1 {
		t.Errorf("a model whose entry has a further alias is loaded again: %+v", n)
	}
	for _, text := range []string{"models: []", "x: y", "models:\n" + tales + tales,
		"models:\n  - {name: a, model: none.gguf}\n", "memory: 1MiB\nmodels:\n" + tales} {
		write(t, path, []byte(text))
		if _, err := s.reload(); err == nil {
			t.Errorf("%s is accepted", text)
		}
		if got := states(); got != "tales=loaded[story] " {
			t.Error(got)
		}
	}
	reload("models:\n"+tales+"  - {name: llama, model: llama-tiny.gguf, keys: keys}\n", "tales=loaded[] ")
	if got := strings.Join(s.Keys(), " "); got != "secret" {
		t.Errorf("keys: %s", got)
	}
	reload("models:\n  - {name: tales, model: tales.gguf, context: 64}\n", "tales=unloaded[] ")
}

// TestRefusals checks catalogs whose models cannot be served.
func TestRefusals(t *testing.T) {
	dir := models(t)
	write(t, filepath.Join(dir, "text.gguf"), []byte("no model"))
	damaged := bytes.Replace(synthetic(t, "llama-tiny", 1), []byte("llama"), []byte("nolla"), -1)
	write(t, filepath.Join(dir, "alien.gguf"), damaged)
	for text, want := range map[string]string{
		"models: [{name: a, model: text.gguf}]":                   "model a: ",
		"models: [{name: a, model: alien.gguf}]":                  "nolla",
		"models: [{name: a, model: none.gguf}]":                   "model a: there is no file none.gguf, and no pulled",
		"models: [{name: a, model: hf:a/b}]":                      "sandwich pull hf:a/b",
		"models: [{name: a, model: tales.gguf, plan: none.plan}]": "none.plan",
		"models: [{name: a, model: tales.gguf, keys: none}]":      "model a: ",
		"memory: 1MiB\nmodels: [{name: a, model: tales.gguf}]":    "raise memory, or lower context",
		"memory: 40MiB\nmodels: [{name: a, model: tales.gguf, context: 64, load: pinned}, {name: b, " +
			"model: llama-tiny.gguf, context: 64, load: pinned}]": "the pinned models together",
	} {
		s, err := Open(options(t, catalogOf(t, dir, text)))
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
