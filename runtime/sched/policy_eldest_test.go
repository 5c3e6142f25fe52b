package sched

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"
)

func init() { policies["eldest"] = func() policy { return eldest{} } }

// eldest is a policy in one file: prompts first, in order of arrival regardless of class; no
// prefill halts for another request; the latest sequence loses its blocks.
type eldest struct{ base }

func (eldest) next(_ *Scheduler, w work) (*request, time.Duration) {
	a, b := w.prefill[Reactive], w.prefill[Proactive]
	if a == nil || b != nil && b.order < a.order {
		return b, 0
	}
	return a, 0
}

func (eldest) batch(s *Scheduler, ready []*request) ([]*request, int) {
	slices.SortFunc(ready, func(a, b *request) int { return cmp.Compare(a.order, b.order) })
	return ready, s.cfg.MaxRunning
}

func (eldest) victim(s *Scheduler) *request {
	for _, r := range slices.Backward(s.running) {
		if !r.writes() {
			return r
		}
	}
	return nil
}

// TestAPolicyIsOneFile checks the invariants under another policy, which is defined in this file,
// and that it decides differently.
func TestAPolicyIsOneFile(t *testing.T) {
	for seed := range manyHistories() / 10 {
		for _, ample := range []bool{false, true} {
			if _, err := randomHistory(history{seed: seed, ample: ample, policy: "eldest"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, halts := range map[string]bool{"": true, DefaultPolicy: true, "eldest": false} {
		cfg := ample()
		cfg.Policy = name
		s := mustNew(cfg)
		s.Step(0, []Event{{Kind: Arrive, ID: 1, Class: Proactive, PromptTokens: 640, MaxTokens: 1}})
		acts := s.Step(0, []Event{{Kind: Arrive, ID: 2, PromptTokens: 64, MaxTokens: 1}})
		if got := len(acts) == 1 && acts[0].Kind == Halt; got != halts {
			t.Errorf("policy %q: a reactive arrival gave %+v", name, acts)
		}
	}
}

func TestUnknownPolicy(t *testing.T) {
	_, err := New(Config{Policy: "beauty"})
	if err == nil {
		t.Fatal("an unknown policy is not refused")
	}
	for _, name := range append(Policies(), "beauty") {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
}
