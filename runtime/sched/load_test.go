package sched

import (
	"fmt"
	"slices"
	"testing"

	"sandwich/runtime/kvcache"
)

// load is a Load in progress: the pieces to fill and the text to fill them with.
type load struct {
	id     ID
	n      int
	pieces []kvcache.Piece
	text   []int32
}

// storedOf draws how much of a prompt is stored outside the cache.
func (d *driver) storedOf(prompt []int32) int {
	if d.stored == nil {
		return 0
	}
	return d.stored.IntN(len(prompt)/kvcache.BlockTokens+2) * kvcache.BlockTokens
}

// loads reports whether a request is loading.
func (d *driver) loads(id ID) bool {
	return slices.ContainsFunc(d.loading, func(l load) bool { return l.id == id })
}

func (d *driver) beginLoad(a *Action) error {
	c := d.live[a.ID]
	if c == nil || a.N <= a.Pos || a.N >= len(c.text) || len(a.Pieces) == 0 || d.loads(a.ID) {
		return fmt.Errorf("load %+v of %d, which is %q", *a, a.ID, d.sinceEnd[a.ID])
	}
	d.loading = append(d.loading, load{a.ID, a.N, slices.Clone(a.Pieces), c.text[:a.N]})
	return nil
}

// endLoad ends the first load in progress: with all pieces, or with an error after some of them.
func (d *driver) endLoad() {
	if len(d.loading) == 0 {
		return
	}
	l := d.loading[0]
	d.loading = d.loading[1:]
	e := Event{Kind: Loaded, ID: l.id}
	if d.stored.IntN(4) == 0 {
		e.Kind = LoadFailed
	}
	for _, p := range l.pieces {
		if e.Kind == LoadFailed && d.stored.IntN(2) == 0 {
			break
		}
		d.content[p.Store][p.ID] = l.text[:(p.Block+1)*kvcache.BlockTokens]
	}
	if c := d.live[l.id]; c != nil && e.Kind == Loaded {
		d.loaded++
		c.computed = l.n
		c.reached = max(c.reached, l.n)
	}
	d.events = append(d.events, e)
}

// TestRandomHistoriesOfLoads is TestRandomHistories with prompts that are stored outside the cache:
// loads end at any time, fail, and outlive their requests.
func TestRandomHistoriesOfLoads(t *testing.T) {
	loaded, preempted := 0, int64(0)
	for seed := range manyHistories() / 10 {
		d, err := randomHistory(history{seed: seed, stored: true, windows: seed%4 == 1, states: seed%4 == 2,
			policy: Policies()[seed%uint64(len(Policies()))]})
		if err != nil {
			t.Fatal(err)
		}
		loaded, preempted = loaded+d.loaded, preempted+d.stats().Preemptions
	}
	if loaded == 0 || preempted == 0 {
		t.Errorf("%d prompts were loaded, %d sequences lost their blocks", loaded, preempted)
	}
}

// prompted is the arrival of a prompt of n tokens, of which some are stored.
func prompted(id ID, n, stored int) Event {
	return Event{Kind: Arrive, ID: id, Prompt: make([]int32, n), MaxTokens: 5, Stored: stored}
}

// TestLoadIsAState checks that a request runs no forward while it loads, that others do, and that
// it continues after the loaded positions, or from the first one if the load failed.
func TestLoadIsAState(t *testing.T) {
	const n = 3*kvcache.BlockTokens + 7
	for _, kind := range []EventKind{Loaded, LoadFailed} {
		s := mustNew(Config{Blocks: 40, MaxRunning: 3, Chunk: 1000})
		expect(t, "arrives", steps(s, prompted(1, n, 3*kvcache.BlockTokens)), "load 1")
		expect(t, "another runs meanwhile", steps(s, arriving(2, Reactive)), "prefill 2")
		if got := s.Stats().Loading; got != 1 {
			t.Errorf("%d requests load, want 1", got)
		}
		expect(t, "loaded", steps(s, Event{Kind: kind, ID: 1}))
		acts := s.Step(0, []Event{{Kind: Done}, {Kind: Finish, ID: 2}})
		want := map[EventKind]int{Loaded: 3 * kvcache.BlockTokens}[kind]
		if len(acts) != 1 || acts[0].Kind != Prefill || acts[0].ID != 1 || acts[0].Pos != want {
			t.Errorf("after event %d: %+v, want a prefill from position %d", kind, acts, want)
		}
		if got := s.Stats().LoadedTokens; got != int64(want) {
			t.Errorf("%d tokens were loaded, want %d", got, want)
		}
	}
}

// TestCancelledLoadKeepsItsBlocks checks that blocks are not reused while a load writes to them.
func TestCancelledLoadKeepsItsBlocks(t *testing.T) {
	const n = 2*kvcache.BlockTokens + 1
	s := mustNew(Config{Blocks: 3, MaxRunning: 2, Chunk: 1000, Queue: 2})
	expect(t, "arrives", steps(s, prompted(1, n, 2*kvcache.BlockTokens)), "load 1")
	expect(t, "is cancelled", steps(s, Event{Kind: Cancel, ID: 1}, prompted(2, n, 0)))
	expect(t, "ends", steps(s, Event{Kind: Loaded, ID: 1}), "prefill 2")
	expect(t, "ends once", steps(s, Event{Kind: Loaded, ID: 1}, Event{Kind: LoadFailed, ID: 2}))
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
