package sched

import (
	"slices"
	"testing"

	"sandwich/runtime/kvcache"
)

func TestRejections(t *testing.T) {
	cfg := Config{Blocks: 2, MaxRunning: 1, Queue: 1, Chunk: 64}
	s := mustNew(cfg)
	reasons := func(acts []Action) (out []Reason) {
		for _, a := range acts {
			if a.Kind == Reject {
				out = append(out, a.Reason)
				if (a.RetryAfter > 0) != (a.Reason == QueueFull) {
					t.Fatalf("retry after %v for %v", a.RetryAfter, a.Reason)
				}
			}
		}
		return out
	}
	acts := s.Step(0, []Event{
		{Kind: Arrive, ID: 1, PromptTokens: 100, MaxTokens: 28},
		{Kind: Arrive, ID: 2, PromptTokens: 100, MaxTokens: 29},
		{Kind: Arrive, ID: 3, PromptTokens: 0, MaxTokens: 1},
		{Kind: Arrive, ID: 1, PromptTokens: 1, MaxTokens: 1},
		{Kind: Arrive, ID: 4, PromptTokens: 1 << 62, MaxTokens: 1 << 62},
		{Kind: Arrive, ID: 5, PromptTokens: 1, MaxTokens: 1},
	})
	if got := reasons(acts); len(got) != 4 || got[0] != TooLong || got[1] != Invalid || got[2] != Invalid ||
		got[3] != TooLong {
		t.Fatalf("rejected for %v", got)
	}
	// One runs, one waits; a flood of the other class has its own queue.
	acts = s.Step(0, []Event{
		{Kind: Arrive, ID: 6, PromptTokens: 1, MaxTokens: 1},
		{Kind: Arrive, ID: 7, Class: Proactive, PromptTokens: 1, MaxTokens: 1},
		{Kind: Arrive, ID: 8, Class: Proactive, PromptTokens: 1, MaxTokens: 1},
	})
	if got := reasons(acts); len(got) != 2 || got[0] != QueueFull || got[1] != QueueFull || s.Live() != 3 {
		t.Fatalf("rejected for %v, %d live", got, s.Live())
	}
}

// TestTooManySamplesAreRejected checks that a driver that samples beyond MaxTokens does not block
// the scheduler.
func TestTooManySamplesAreRejected(t *testing.T) {
	s := mustNew(Config{Blocks: 1, MaxRunning: 1})
	s.Step(0, []Event{{Kind: Arrive, ID: 1, PromptTokens: 63, MaxTokens: 1}})
	s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1}})
	acts := s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1}})
	if len(acts) != 1 || acts[0].Kind != Reject || s.Live() != 0 {
		t.Fatalf("got %+v with %d live", acts, s.Live())
	}
}

// TestSampleWithoutTokenIsRejected checks that a driver that reports no token for a request with
// known tokens does not block the scheduler.
func TestSampleWithoutTokenIsRejected(t *testing.T) {
	s := mustNew(Config{Blocks: 1, MaxRunning: 1})
	s.Step(0, []Event{{Kind: Arrive, ID: 1, Prompt: []int32{1, 2}, MaxTokens: 9}})
	acts := s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1}})
	if len(acts) != 1 || acts[0].Kind != Reject || acts[0].Reason != Invalid || s.Live() != 0 {
		t.Fatalf("got %+v with %d live", acts, s.Live())
	}
}

// TestManySampledTokens checks that tokens that no row of the forward has computed are computed
// like a prompt.
func TestManySampledTokens(t *testing.T) {
	s := mustNew(Config{Blocks: 2, MaxRunning: 4})
	s.Step(0, []Event{{Kind: Arrive, ID: 1, Prompt: []int32{1, 2}, MaxTokens: 9}})
	acts := s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1, Tokens: []int32{3, 4, 5}}})
	if len(acts) != 1 || acts[0].Kind != Prefill || acts[0].Pos != 2 || acts[0].N != 3 {
		t.Fatalf("three tokens behind a prompt of two give %+v", acts)
	}
	acts = s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1, Tokens: []int32{6}, Draft: []int32{7, 8, 9, 10, 11}}})
	if len(acts) != 1 || acts[0].Kind != Decode || acts[0].Rows[0] != (Rows{1, 4}) {
		t.Fatalf("a draft of five gives %+v, want the four rows there are", acts)
	}
	acts = s.Step(0, []Event{{Kind: Done}, {Kind: Sampled, ID: 1, Tokens: []int32{7, 8, 12}}})
	if len(acts) != 1 || acts[0].Kind != Decode || acts[0].Rows[0] != (Rows{1, 1}) {
		t.Fatalf("two right guesses give %+v, want the row of the token behind them", acts)
	}
	var b kvcache.Batch
	if s.Fill(0, &b); b.Spans[0].Pos != 8 || !slices.Equal(b.Tokens, []int32{12}) {
		t.Fatalf("the batch is %+v, want token 12 at position 8", b)
	}
}
