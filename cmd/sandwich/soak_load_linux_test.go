package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const soakClients = 12

// soakLoad holds the clients of a soak: each asks one of a few questions whose greedy answers are
// known.
type soakLoad struct {
	t         *testing.T
	server    *served
	http      *http.Client
	questions []question
	seed      uint64

	// Answers that were read to the end, hung up on in the middle, and before the first token.
	whole, begun, aborted atomic.Int64
}

// question holds a request and the answer that it gets alone.
type question struct {
	Prompt      string  `json:"prompt"`
	MaxTokens   int     `json:"max_tokens"`
	Tier        string  `json:"service_tier"`
	Stream      bool    `json:"stream"`
	Temperature float64 `json:"temperature"`
	answer      string
}

// newSoakLoad asks every question alone.
func newSoakLoad(t *testing.T, s *served) *soakLoad {
	t.Helper()
	l := &soakLoad{t: t, server: s, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: soakClients}}}
	rng := rand.New(rand.NewPCG(1, 10))
	words := strings.Fields("once upon a time there lived an old king who had three sons " +
		"and one day the fox said to him come with me into the wood")
	for i := range 60 {
		prompt := ""
		if i%5 == 0 { // shares its first blocks with others
			prompt = strings.Repeat("Once upon a time there was a king. ", 10)
		}
		for range 1 + rng.IntN(20) {
			prompt += words[rng.IntN(len(words))] + " "
		}
		q := question{Prompt: strings.TrimSpace(prompt), MaxTokens: 1 + rng.IntN(32), Tier: "default", Stream: i%2 == 0}
		if i%3 == 0 {
			q.Tier = "flex"
		}
		var whole bool
		if q.answer, whole = l.read(context.Background(), &q, -1); !whole {
			t.Fatalf("question %d was not answered", i)
		}
		l.questions = append(l.questions, q)
	}
	return l
}

// ask puts one question at random and compares; every fifth time it goes before the answer ends,
// sometimes before it begins.
func (l *soakLoad) ask(rng *rand.Rand) {
	q := &l.questions[rng.IntN(len(l.questions))]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := -1
	switch rng.IntN(10) {
	case 0:
		time.AfterFunc(time.Duration(rng.IntN(20))*time.Millisecond, cancel)
	case 1, 2: // half of the questions are streams
		events = rng.IntN(q.MaxTokens)
	}
	got, whole := l.read(ctx, q, events)
	switch {
	case whole && got == q.answer:
		l.whole.Add(1)
	case whole || !strings.HasPrefix(q.answer, got):
		l.t.Errorf("%q: %q in a batch, %q alone", q.Prompt, got, q.answer)
	case got == "":
		l.aborted.Add(1)
	default:
		l.begun.Add(1)
	}
}

// read sends a question and returns the text that came, and whether that is all of it: it is not
// where ctx ended, or where a stream was left after some events.
func (l *soakLoad) read(ctx context.Context, q *question, events int) (text string, whole bool) {
	body, err := json.Marshal(q)
	if err != nil {
		l.t.Error(err)
	}
	req, err := http.NewRequestWithContext(ctx, "POST", l.server.url+"/v1/completions", strings.NewReader(string(body)))
	if err != nil {
		l.t.Error(err)
		return "", false
	}
	res, err := l.http.Do(req)
	if err != nil {
		return "", l.gone(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(res.Body)
		l.t.Errorf("status %d: %s", res.StatusCode, why)
		return "", false
	}
	if !q.Stream {
		all, err := io.ReadAll(res.Body)
		if err != nil {
			return "", l.gone(ctx, err)
		}
		return l.textOf(string(all)), true
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
		case data == "[DONE]":
			return text, true
		case events == 0:
			return text, false
		default:
			events--
			text += l.textOf(data)
		}
	}
	return text, l.gone(ctx, lines.Err())
}

// gone reports an answer that broke off though its client did not; it is never whole.
func (l *soakLoad) gone(ctx context.Context, err error) bool {
	if ctx.Err() == nil {
		l.t.Errorf("the answer broke off: %v", err)
	}
	return false
}

func (l *soakLoad) textOf(data string) string {
	var a struct{ Choices []struct{ Text string } }
	if err := json.Unmarshal([]byte(data), &a); err != nil || len(a.Choices) > 1 {
		l.t.Errorf("%v: %s", err, data)
	}
	if len(a.Choices) == 0 {
		return "" // usage
	}
	return a.Choices[0].Text
}
