package sched

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"sandwich/runtime/kvcache"
)

// history is a random history: its seed, whether blocks suffice, and the policy. record,
// if there is one, hears of every action.
type history struct {
	seed   uint64
	room   bool
	policy string
	record io.Writer
}

// randomHistory drives one scheduler through a random history of arrivals,
// hang-ups, halted prefills and Steps in mid-flight, and then lets it drain: under
// a cache so small that sequences fight for blocks, or under one with blocks for all.
func randomHistory(h history) (Stats, error) {
	rng := rand.New(rand.NewPCG(h.seed, 1))
	cfg := Config{
		Blocks:     3 + rng.IntN(6),
		MaxRunning: 1 + rng.IntN(6),
		Queue:      rng.IntN(8),
		Chunk:      []int{1, 7, 64, 100}[rng.IntN(4)],
		MixedCap:   1 + rng.IntN(3),
		Aging:      time.Duration(rng.IntN(60)-1) * time.Millisecond,
		Policy:     h.policy,
	}
	if cfg.Chunk == 1 {
		cfg.Blocks = 3
	}
	if h.room {
		const longest = 2*kvcache.BlockTokens + 4 + 6
		cfg.Blocks = cfg.residents()*kvcache.BlocksFor(longest) + cfg.MaxRunning
	}
	d := newDriver(cfg, rng)
	if h.record != nil {
		d.record = h.record
	}
	next := ID(1)
	for range 6 + rng.IntN(30) {
		if rng.IntN(3) == 0 && next < 24 {
			// Lengths near a block's end, so that a few tokens need a new block;
			// texts of few kinds, so that prefixes are shared.
			prompt := make([]int32, max(1, kvcache.BlockTokens*rng.IntN(3)+rng.IntN(9)-4))
			if rng.IntN(2) == 0 {
				prompt[len(prompt)-1] = 1
			}
			d.arrive(next, Class(rng.IntN(2)), prompt, 1+rng.IntN(6))
			next++
		}
		if rng.IntN(12) == 0 {
			for id := range next {
				if d.live[id] != nil && rng.IntN(4) == 0 {
					d.cancel(id)
					break
				}
			}
		}
		if d.flight != nil && rng.IntN(3) > 0 {
			d.now = d.ends
			if d.flight.Kind != Decode && rng.IntN(3) == 0 {
				d.halt()
			} else {
				d.land()
			}
		}
		d.now += time.Duration(rng.IntN(3)) * time.Millisecond / 2
		if err := d.step(); err != nil {
			return Stats{}, fmt.Errorf("seed %d: %w", h.seed, err)
		}
	}
	if err := d.drain(4000); err != nil {
		return Stats{}, fmt.Errorf("seed %d, draining: %w", h.seed, err)
	}
	for id := ID(1); id < next; id++ {
		if d.sinceEnd[id] == "" {
			return Stats{}, fmt.Errorf("seed %d: request %d was lost", h.seed, id)
		}
	}
	return d.stats(), nil
}

// TestRandomHistories is the property test of the design: whatever happens, no
// request is lost, blocks balance, batches are right and nothing deadlocks.
func TestRandomHistories(t *testing.T) {
	var all Stats
	for seed := range manyHistories() {
		st, err := randomHistory(history{seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		all.Preemptions += st.Preemptions
		all.RecomputedTokens += st.RecomputedTokens
	}
	if all.Preemptions == 0 || all.RecomputedTokens == 0 {
		t.Errorf("nobody fought for blocks: %+v", all)
	}
}

// TestNothingIsComputedTwice: where blocks suffice, nobody loses them, whatever
// arrives, halts and leaves.
func TestNothingIsComputedTwice(t *testing.T) {
	evictions := int64(0)
	for seed := range manyHistories() / 4 {
		st, err := randomHistory(history{seed: seed, room: true})
		if err != nil {
			t.Fatal(err)
		}
		if st.Preemptions != 0 || st.RecomputedTokens != 0 {
			t.Fatalf("seed %d: %d sequences lost their blocks and %d positions were computed again",
				seed, st.Preemptions, st.RecomputedTokens)
		}
		evictions += st.Evictions
	}
	if evictions == 0 {
		t.Error("no batch was full: the test tests nothing")
	}
}

func manyHistories() uint64 {
	if testing.Short() {
		return 5_000
	}
	return histories
}
