package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandwich/runtime/api"
)

// seeded is a Generator that returns its prompt and seed and records concurrent requests.
type seeded struct {
	fake
	mu     sync.Mutex
	at     int
	max    int
	begun  bool // a request has its first token
	early  bool // a later choice ran before the first token
	full   int  // number of later choices to refuse
	fail   int32
	failed atomic.Int32
}

func (s *seeded) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	s.mu.Lock()
	if r.Queued == nil && s.full > 0 {
		s.full--
		s.mu.Unlock()
		return api.Result{}, &api.QueueFullError{}
	}
	if r.Sampling.Seed%100 > 0 && !s.begun {
		s.early = true
	}
	s.at++
	s.max = max(s.max, s.at)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.at--
		s.mu.Unlock()
	}()
	if s.fail > 0 && s.failed.Add(1) == s.fail {
		return api.Result{}, errors.New("boom")
	}
	if r.OfPrompt {
		for i, id := range r.Prompt {
			t := api.Token{Prompt: true, TokenLogprob: api.TokenLogprob{ID: id, Piece: s.Piece(id), Logprob: -1}}
			if t.Top = []api.TokenLogprob{{Piece: "z", Logprob: -2}}; i == 0 {
				t.Logprob, t.Top = nan, nil
			}
			if err := emit(t); err != nil {
				return api.Result{}, err
			}
		}
	}
	if r.PromptOnly {
		return api.Result{Finish: api.FinishLength, PromptTokens: len(r.Prompt)}, nil
	}
	from := r.Text
	if from == "" {
		from, _ = s.Decode(ctx, r.Prompt)
	}
	for _, word := range []string{from, fmt.Sprint(" ", r.Sampling.Seed)} {
		if err := ctx.Err(); err != nil {
			return api.Result{}, err
		}
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		s.begun = true // emit may start other choices
		s.mu.Unlock()
		t := api.Token{Text: word, TokenLogprob: api.TokenLogprob{Piece: word, Logprob: -0.5}}
		if err := emit(t); err != nil {
			return api.Result{}, err
		}
	}
	return api.Result{Finish: api.FinishStop, PromptTokens: 5, CachedTokens: 2, Tokens: 2}, nil
}

var nan = float32(math.NaN())

// Choices are ordered by index regardless of which ends first, n per prompt. Later choices have
// their own seeds, start after the first token of the first one and count their prompt once.
func TestChoices(t *testing.T) { synctest.Test(t, testChoices) }

func testChoices(t *testing.T) {
	const body = `{"prompt":["a",[98],"c"],"n":3,"seed":100,"max_tokens":4`
	want := []string{"a 100", "a 101", "a 102", "b 100", "b 101", "b 102", "c 100", "c 101", "c 102"}
	g := &seeded{}
	v := parsed(t, post(t, New(g, Options{}), "/v1/completions", body+"}").Body.Bytes())
	var got []string
	for i := range want {
		got = append(got, fmt.Sprint(at(v, "choices", i, "text")))
		if at(v, "choices", i, "index") != float64(i) || at(v, "choices", i, "finish_reason") != "stop" {
			t.Errorf("choice %d: %v", i, at(v, "choices", i))
		}
	}
	if !reflect.DeepEqual(got, want) || at(v, "usage", "prompt_tokens") != 15.0 ||
		at(v, "usage", "completion_tokens") != 18.0 || at(v, "usage", "prompt_tokens_details", "cached_tokens") != 6.0 {
		t.Errorf("%q, %v", got, at(v, "usage"))
	}
	if g.early || g.max > 4 || g.max < 2 {
		t.Errorf("a copy ran before the prompt was there: %v; %d ran at once", g.early, g.max)
	}
	g.full = 5 // after the first choice a full queue makes choices wait
	w := post(t, New(g, Options{}), "/v1/completions", body+`,"stream":true,"stream_options":{"include_usage":true}}`)
	texts := make([]string, len(want))
	all := chunks(t, w.Body)
	for _, c := range all[:len(all)-1] {
		i, _ := at(c, "choices", 0, "index").(float64)
		text, _ := at(c, "choices", 0, "text").(string)
		texts[int(i)] += text
		if at(c, "choices", 0, "finish_reason") == "stop" {
			texts[int(i)] += "."
		}
	}
	if last := all[len(all)-1]; strings.Join(texts, "") != strings.Join(want, ".")+"." ||
		at(last, "usage", "completion_tokens") != 18.0 {
		t.Errorf("streamed %q, %v", texts, last)
	}
	w = post(t, New(&seeded{fail: 3}, Options{}), "/v1/completions", body+"}")
	if w.Code != 500 || !strings.Contains(w.Body.String(), "boom") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = post(t, New(&fake{err: &api.QueueFullError{}}, Options{}), "/v1/completions", body+"}")
	if w.Code != 429 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	v = parsed(t, post(t, New(&calling{}, Options{}), chatPath, chat(twoTools+`,"n":2`)).Body.Bytes())
	if at(v, "choices", 1, "message", "tool_calls", 1, "id") != "c1" || at(v, "choices", 1, "index") != 1.0 {
		t.Errorf("%v", v)
	}
}

// Echoed prompts precede each of their answers, with log probabilities of their tokens if
// requested; the first token has none.
func TestEcho(t *testing.T) {
	s := New(&seeded{}, Options{})
	v := parsed(t, post(t, s, "/v1/completions", `{"prompt":["ab",[99,100]],"echo":true,"seed":1,"n":2}`).Body.Bytes())
	for i, want := range []string{"abab 1", "abab 2", "cdcd 1", "cdcd 2"} {
		if at(v, "choices", i, "text") != want {
			t.Errorf("choice %d: %v, want %q", i, at(v, "choices", i), want)
		}
	}
	const body = `{"prompt":[99,100],"echo":true,"seed":1,"logprobs":1`
	v = parsed(t, post(t, s, "/v1/completions", body+"}").Body.Bytes())
	lp := at(v, "choices", 0, "logprobs")
	if at(v, "choices", 0, "text") != "cdcd 1" ||
		!reflect.DeepEqual(at(lp, "tokens"), []any{"c", "d", "cd", " 1"}) ||
		!reflect.DeepEqual(at(lp, "token_logprobs"), []any{nil, -1.0, -0.5, -0.5}) ||
		!reflect.DeepEqual(at(lp, "text_offset"), []any{0.0, 1.0, 2.0, 4.0}) || at(lp, "top_logprobs", 0) != nil ||
		at(lp, "top_logprobs", 1, "z") != -2.0 {
		t.Errorf("%v", v)
	}
	var text string
	var offsets []any
	for _, c := range chunks(t, post(t, s, "/v1/completions", body+`,"stream":true}`).Body) {
		piece, _ := at(c, "choices", 0, "text").(string)
		text += piece
		if o := at(c, "choices", 0, "logprobs", "text_offset", 0); o != nil {
			offsets = append(offsets, o)
		}
	}
	if text != "cdcd 1" || !reflect.DeepEqual(offsets, []any{0.0, 1.0, 2.0, 4.0}) {
		t.Errorf("streamed %q, %v", text, offsets)
	}
	v = parsed(t, post(t, s, "/v1/completions", body+`,"max_tokens":0}`).Body.Bytes())
	if at(v, "choices", 0, "text") != "cd" || at(v, "choices", 0, "finish_reason") != "length" ||
		at(v, "usage", "completion_tokens") != 0.0 {
		t.Errorf("%v", v)
	}
}

func TestLogitBias(t *testing.T) {
	f := &fake{words: []string{"x"}}
	s := New(f, Options{})
	for _, bias := range []string{`{"5":-1.5,"7":-100}`, `[[5,-1.5],[7,false]]`} {
		post(t, s, chatPath, chat(`"logit_bias":`+bias))
		if got := f.request().Sampling.Bias; !reflect.DeepEqual(got, map[int32]float32{5: -1.5, 7: -100}) {
			t.Errorf("%s: %v", bias, got)
		}
	}
}
