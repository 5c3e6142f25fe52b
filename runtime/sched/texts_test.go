package sched

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRandomHistoriesOfTexts is TestRandomHistories for texts without generation, under each
// policy: forwards pack several of them.
func TestRandomHistoriesOfTexts(t *testing.T) {
	var stops, packed int64
	for seed := range manyHistories() / 4 {
		for _, policy := range Policies() {
			d, err := randomHistory(history{seed: seed, texts: true, policy: policy})
			if err != nil {
				t.Fatal(policy, err)
			}
			stops += d.stats().Stops
			packed += int64(d.packed)
		}
	}
	if stops == 0 || packed == 0 {
		t.Errorf("%d forwards halted and %d had several texts: the test tests nothing", stops, packed)
	}
}

// read makes requests texts.
func (h *history) read(cfg *Config, rng *rand.Rand) {
	if h.texts {
		cfg.Texts, cfg.Whole = true, rng.IntN(2) > 0
	}
}

// want returns how many tokens a request generates.
func (h *history) want(rng *rand.Rand) int {
	n := 1 + rng.IntN(6)
	if h.texts {
		return 1
	}
	return n
}

// lose forgets the halted forward if one of its requests ends.
func (d *driver) lose(id ID) {
	if d.stopped != 0 && d.halted.has(id) {
		d.stopped = 0
	}
}

// has reports whether a request is part of a forward.
func (a *Action) has(id ID) bool {
	return slices.ContainsFunc(a.rows(), func(r Rows) bool { return r.ID == id })
}

// wanted returns how many requests of a forward are live.
func (d *driver) wanted(a *Action) (n int) {
	for _, r := range a.rows() {
		if d.live[r.ID] != nil {
			n++
		}
	}
	return n
}
