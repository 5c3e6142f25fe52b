package sched

import (
	"slices"
	"testing"
	"time"

	"sandwich/runtime/kvcache"
)

// startDrafting starts decoding requests of one prompt token, each with a draft of n tokens, and
// returns the actions of the step that follows.
func startDrafting(s *Scheduler, n int, classes ...Class) []Action {
	var arrivals, sampled []Event
	for i, c := range classes {
		arrivals = append(arrivals, Event{Kind: Arrive, ID: ID(i), Class: c, Prompt: []int32{1}, MaxTokens: 60})
		sampled = append(sampled, Event{Kind: Sampled, ID: ID(i), Tokens: []int32{2}, Draft: make([]int32, n)})
	}
	s.Step(0, arrivals)
	return s.Step(0, append([]Event{{Kind: Done}}, sampled...))
}

// TestDraftRows checks how many rows drafts may fill: up to BatchRows, and next to requests of the
// other class up to the mixed cap or the predicted time per token.
func TestDraftRows(t *testing.T) {
	perRow := func(rows, _ int) time.Duration { return time.Duration(rows) * time.Millisecond }
	one, both := []Class{Reactive}, []Class{Reactive, Proactive}
	for _, c := range []struct {
		name    string
		cfg     Config
		classes []Class
		draft   int
		want    int // rows of the batch
	}{
		{"one request", Config{MaxRunning: 1, BatchRows: 16}, one, 30, 16},
		{"short draft", Config{MaxRunning: 1, BatchRows: 16}, one, 3, 4},
		{"rows of requests", Config{MaxRunning: 2}, one, 30, 2},
		{"two requests", Config{MaxRunning: 2, BatchRows: 8}, []Class{Reactive, Reactive}, 5, 8},
		{"mixed cap", Config{MaxRunning: 2, BatchRows: 16, MixedCap: 4}, both, 30, 4},
		{"time per token", Config{MaxRunning: 2, BatchRows: 16, TPOT: 6 * time.Millisecond, Forecast: perRow}, both, 30,
			6},
		{"generous time per token", Config{MaxRunning: 2, BatchRows: 16, TPOT: time.Second, Forecast: perRow}, both, 30,
			16},
		{"context nearly full", Config{MaxRunning: 1, BatchRows: 128}, one, 100, 60},
		{"few blocks", Config{MaxRunning: 1, BatchRows: 16, Blocks: 1}, one, 30, 16},
	} {
		if c.cfg.Blocks == 0 {
			c.cfg.Blocks = 40
		}
		s := mustNew(c.cfg)
		rows := 0
		for _, a := range startDrafting(s, c.draft, c.classes...) {
			for _, r := range a.Rows {
				rows += r.N
			}
		}
		if rows != c.want {
			t.Errorf("%s: the batch has %d rows, want %d", c.name, rows, c.want)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestDraftsAtBlockEnds checks which drafts cross the end of a block if few blocks are free: a
// block is taken if each other sequence is left one, or if an earlier draft has taken it; otherwise
// the draft ends with the block.
func TestDraftsAtBlockEnds(t *testing.T) {
	const near = kvcache.BlockTokens - 3 // positions known after the prompt and one token
	for _, c := range []struct {
		name             string
		blocks, requests int
		want             []Rows
	}{
		{"a block is free", 2, 1, []Rows{{0, 9}}},
		{"one block for two requests", 3, 2, []Rows{{0, 4}, {1, 4}}},
		{"a block for each request", 4, 2, []Rows{{0, 9}, {1, 4}}},
		{"three blocks for two requests", 5, 2, []Rows{{0, 9}, {1, 9}}},
	} {
		s := mustNew(Config{Blocks: c.blocks, MaxRunning: c.requests, BatchRows: 18})
		events := []Event{{Kind: Done}}
		for i := range c.requests {
			if i > 0 {
				s.Step(0, events[:1])
			}
			prompt := slices.Repeat([]int32{int32(i)}, near-1)
			s.Step(0, []Event{{Kind: Arrive, ID: ID(i), Prompt: prompt, MaxTokens: 60}})
			events = append(events, Event{Kind: Sampled, ID: ID(i), Tokens: []int32{9}, Draft: make([]int32, 8)})
		}
		acts := s.Step(0, events)
		if len(acts) == 0 {
			t.Fatalf("%s: nothing runs", c.name)
		}
		if got := acts[len(acts)-1].Rows; !slices.Equal(got, c.want) {
			t.Errorf("%s: the batch is %+v, want %+v", c.name, got, c.want)
			continue
		}
		if c.requests > 1 {
			continue
		}
		if acts = s.Step(0, events); acts[len(acts)-1].Rows[0].N != 9 {
			t.Errorf("%s: after all drafted tokens were rejected the batch is %+v", c.name, acts[len(acts)-1].Rows)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestAllotSeesDrafts checks what Config.Allot gets, and that its result counts.
func TestAllotSeesDrafts(t *testing.T) {
	var seen []Draft
	s := mustNew(Config{Blocks: 8, MaxRunning: 2, BatchRows: 9, Allot: func(drafts []Draft, free int) {
		seen = append(append(seen, drafts...), Draft{Known: free})
		drafts[1].Rows = 3
	}})
	s.Step(0, []Event{{Kind: Arrive, ID: 1, Prompt: []int32{1}, MaxTokens: 9}, {Kind: Arrive, ID: 2, Prompt: []int32{1},
		MaxTokens: 9}})
	seen = nil
	acts := s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1, Tokens: []int32{2}}, {Kind: Sampled, ID: 2,
		Tokens: []int32{2}, Draft: []int32{3, 4, 5, 6, 7}, Certain: 2, Chance: 0.5}})
	want := []Draft{{ID: 1, Known: 2}, {ID: 2, Known: 2, Tokens: 5, Certain: 2, Chance: 0.5}, {Known: 7}}
	if !slices.Equal(seen, want) {
		t.Errorf("Allot got %+v, want %+v", seen, want)
	}
	if len(acts) != 1 || !slices.Equal(acts[0].Rows, []Rows{{1, 1}, {2, 4}}) {
		t.Errorf("the batch is %+v, want one row and four", acts)
	}
}

// TestFinishAcceptsDrafts checks that drafted tokens accepted by the last forward of a request are
// shared with later prompts, and rejected ones are not.
func TestFinishAcceptsDrafts(t *testing.T) {
	text := make([]int32, 2*kvcache.BlockTokens)
	for i := range text {
		text[i] = int32(i)
	}
	for accepted, want := range map[int]int{0: 0, 3: 0, 4: kvcache.BlockTokens, 7: kvcache.BlockTokens} {
		s := mustNew(Config{Blocks: 8, MaxRunning: 1, BatchRows: 16})
		s.Step(0, []Event{{Kind: Arrive, ID: 1, Prompt: text[:59], MaxTokens: 30}})
		acts := s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1, Tokens: text[59:60], Draft: text[60:70]}})
		if len(acts) != 1 || !slices.Equal(acts[0].Rows, []Rows{{1, 11}}) {
			t.Fatalf("the draft gives %+v", acts)
		}
		s.Step(0, []Event{{Kind: Done}, {Kind: Finish, ID: 1, Tokens: text[60 : 60+accepted]}})
		if got := s.Cached(kvcache.Salt{}, text); got != want {
			t.Errorf("%d accepted tokens leave %d cached, want %d", accepted, got, want)
		}
		if err := s.Check(); err != nil || s.Live() != 0 {
			t.Errorf("%v, %d live", err, s.Live())
		}
	}
}
