package sched

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"sandwich/runtime/kvcache"
)

// history describes a random history. record, unless nil, gets every action.
type history struct {
	seed    uint64
	ample   bool
	policy  string
	drafts  bool // guesses are made at what follows
	copies  bool // states in drafts are copied
	windows bool // some layers remember a window only
	texts   bool // nothing is drawn
	states  bool // some layers have a state
	ranks   bool // requests have priorities
	stored  bool // some prompts can be loaded
	record  io.Writer

	reactive bool    // every request is
	forecast float64 // predicted by really; 0: nothing is predicted
}

// randomHistory runs a scheduler through a random history of arrivals, cancellations, halted
// prefills and Steps during forwards, and then drains it: with a cache that is too small for all
// sequences, or large enough.
func randomHistory(h history) (*driver, error) {
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
	h.change(&cfg, rng)
	if cfg.Chunk == 1 {
		cfg.Blocks = 3
	}
	if h.ample {
		const longest = 2*kvcache.BlockTokens + 4 + 6
		cfg.Blocks = cfg.residents()*kvcache.BlocksFor(longest) + cfg.MaxRunning
	}
	if h.windows {
		kinds := []kvcache.Kind{kvcache.Window{Positions: 1 + rng.IntN(80)}, kvcache.Full{}}[:1+rng.IntN(2)]
		cfg.Stores = kvcache.Sizes(kinds, cfg.Blocks, cfg.residents(), cfg.Chunk)
	}
	if h.states {
		kinds := []kvcache.Kind{kvcache.Recurrent{}, kvcache.Full{}}[:1+rng.IntN(2)]
		cfg.Stores = kvcache.Sizes(kinds, cfg.Blocks, cfg.residents(), cfg.Chunk)
		cfg.Stores[0].Blocks += rng.IntN(5)
	}
	d := newDriver(cfg, rng)
	h.equip(d)
	next := ID(1)
	for range 6 + rng.IntN(30) {
		if rng.IntN(3) == 0 && next < 24 {
			// Lengths near a block's end, so that a few tokens need a new block;
			// texts of few kinds, so that prefixes are shared.
			prompt := make([]int32, max(1, kvcache.BlockTokens*rng.IntN(3)+rng.IntN(9)-4))
			if rng.IntN(2) == 0 {
				prompt[len(prompt)-1] = 1
			}
			class := Class(rng.IntN(2))
			if h.reactive {
				class = Reactive
			}
			d.arrive(next, class, prompt, h.want(rng))
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
			if d.flight.Kind != Decode && (rng.IntN(3) == 0 || d.flight.Quantum > 0 && rng.IntN(2) == 0) {
				d.halt()
			} else {
				d.land()
			}
		}
		d.now += time.Duration(rng.IntN(3)) * time.Millisecond / 2
		if d.stored != nil && d.stored.IntN(3) == 0 {
			d.endLoad()
		}
		if err := d.step(); err != nil {
			return nil, fmt.Errorf("seed %d: %w", h.seed, err)
		}
	}
	if err := d.drain(4000); err != nil {
		return nil, fmt.Errorf("seed %d, draining: %w", h.seed, err)
	}
	for id := ID(1); id < next; id++ {
		if d.sinceEnd[id] == "" {
			return nil, fmt.Errorf("seed %d: request %d was lost", h.seed, id)
		}
	}
	return d, nil
}

// TestRandomHistoriesOfWindows is TestRandomHistories with stores that keep a window, and with
// drafts.
func TestRandomHistoriesOfWindows(t *testing.T) {
	var all Stats
	for seed := range manyHistories() {
		d, err := randomHistory(history{seed: seed, windows: true, drafts: seed%2 == 1})
		if err != nil {
			t.Fatal(err)
		}
		all.Preemptions += d.stats().Preemptions
		all.ReusedTokens += d.stats().ReusedTokens
	}
	if all.Preemptions == 0 || all.ReusedTokens == 0 {
		t.Errorf("no sequence was preempted or shared blocks: %+v", all)
	}
}

// equip prepares the driver for the history.
func (h *history) equip(d *driver) {
	if h.drafts {
		d.drafts = rand.New(rand.NewPCG(h.seed, 3))
	}
	if h.ranks {
		d.ranks = rand.New(rand.NewPCG(h.seed, 4))
	}
	if h.stored {
		d.stored = rand.New(rand.NewPCG(h.seed, 5))
	}
	d.record = h.record
}

// change applies the history to the configuration.
func (h *history) change(cfg *Config, rng *rand.Rand) {
	cfg.CopyStates = h.copies
	h.predict(cfg, rng)
	h.read(cfg, rng)
}

// predict adds a forecast of half a millisecond per row, right or wrong.
func (h *history) predict(cfg *Config, rng *rand.Rand) {
	if h.forecast != 0 {
		cfg.TPOT = time.Duration(rng.IntN(3)) * time.Millisecond
		cfg.Forecast = func(rows, positions int) time.Duration {
			return time.Duration(h.forecast * float64(rows) * float64(time.Millisecond) / 2)
		}
	}
}

// TestRandomHistories checks on random histories that no request is lost, blocks balance, batches
// are right and nothing deadlocks.
func TestRandomHistories(t *testing.T) {
	var all Stats
	for seed := range manyHistories() {
		d, err := randomHistory(history{seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		st := d.stats()
		all.Preemptions += st.Preemptions
		all.RecomputedTokens += st.RecomputedTokens
	}
	if all.Preemptions == 0 || all.RecomputedTokens == 0 {
		t.Errorf("no sequence was preempted: %+v", all)
	}
}

// TestNothingIsComputedTwice checks that with enough blocks no sequence loses its blocks.
func TestNothingIsComputedTwice(t *testing.T) {
	evictions := int64(0)
	for seed := range manyHistories() / 4 {
		d, err := randomHistory(history{seed: seed, ample: true})
		if err != nil {
			t.Fatal(err)
		}
		st := d.stats()
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

// TestDrafts checks the same with rows for drafts, right or wrong, for which no sequence loses
// blocks.
func TestDrafts(t *testing.T) {
	guessed, right := 0, 0
	for seed := range manyHistories() / 8 {
		for _, ample := range []bool{false, true} {
			d, err := randomHistory(history{seed: seed, ample: ample, drafts: true})
			if err != nil {
				t.Fatal(err)
			}
			if st := d.stats(); ample && st.Preemptions != 0 {
				t.Fatalf("seed %d: %d sequences lost their blocks", seed, st.Preemptions)
			}
			guessed, right = guessed+d.guessed, right+d.right
		}
	}
	if right == 0 || right == guessed {
		t.Errorf("of %d guesses that ran %d were right: the test tests nothing", guessed, right)
	}
}

// asked is the number of histories of `make histories`.
var asked = flag.Uint64("histories", 0, "random histories of the longest test; others run a part of them")

func manyHistories() uint64 {
	if *asked > 0 {
		return *asked
	}
	return 8_000
}
