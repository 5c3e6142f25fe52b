package speculate

import (
	"math/rand/v2"
	"testing"

	"sandwich/runtime/sched"
)

// simulated runs steps of a sequence whose drafts are accepted with a probability. It returns the
// tokens per time relative to plain decoding on a machine with these times of steps.
func simulated(c *Controller, times []float64, accept float64, steps int, rng *rand.Rand) float64 {
	var a Acceptance
	tokens, took := 0, 0.0
	for range steps {
		list := []sched.Draft{{Tokens: len(times) - 1, Chance: c.Chance(&a, 0)}}
		c.Allot(list, len(times)-1)
		n, accepted := list[0].Rows, 0
		for accepted < n && rng.Float64() < accept {
			accepted++
		}
		if n > 0 {
			c.Verified(&a, 0, min(n, accepted+1), accepted)
		}
		step := times[n] * (0.97 + 0.06*rng.Float64())
		c.Stepped(n+1, n+1, step/1000)
		tokens, took = tokens+1+accepted, took+step
	}
	return float64(tokens) / took * times[0]
}

// TestControllerNeverLoses checks the bounds of the controller on simulated machines: right drafts
// gain most of what is possible, and wrong ones cost at most 2 %, even with a wrong prior.
func TestControllerNeverLoses(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, each := range []float64{0.01, 0.1, 0.5, 1} {
		for _, accept := range []float64{0, 0.3, 0.6, 0.8, 1} {
			times := linear(16, each)
			bound, expected, p := 1.0, 1.0, 1.0
			for d := 1; d < len(times); d++ {
				p *= accept
				expected += p
				bound = max(bound, expected/times[d])
			}
			c := NewController(oneCurve(linear(16, 0.05)), 0, false)
			if got := simulated(c, times, accept, 512, rng); got < 0.88*bound || got < 0.97 {
				t.Errorf("rows of %g steps, acceptance %g: %.3f times plain speed at first, the bound is %.3f", each,
					accept, got, bound)
			}
			if got := simulated(c, times, accept, 3000, rng); got < 0.9*bound || got < 0.98 {
				t.Errorf("rows of %g steps, acceptance %g: %.3f times plain speed, the bound is %.3f", each, accept,
					got, bound)
			}
		}
	}
}

// TestControllerFollowsAcceptance checks that drafting resumes when drafts become right again.
func TestControllerFollowsAcceptance(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	c, times := NewController(oneCurve(linear(16, 0.1)), 0, false), linear(16, 0.1)
	simulated(c, times, 0, 2000, rng)
	simulated(c, times, 1, 3000, rng)
	if got := simulated(c, times, 1, 500, rng); got < 4 {
		t.Errorf("%.2f times plain speed after drafts became right", got)
	}
}

// TestWrongDraftsInBatches checks that drafts that are never accepted cost at most 2 % in batches
// of one, four and eight sequences with answers of 32 or 512 tokens.
func TestWrongDraftsInBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, each := range []float64{0.005, 0.03, 0.2} {
		for _, batch := range []int{1, 4, 8} {
			for _, length := range []int{32, 512} {
				times := linear(16, each)
				c := NewController(oneCurve(linear(16, 0.01)), 0, false)
				plain, took := 0.0, 0.0
				for range 4096 / length {
					answers := make([]Acceptance, batch)
					for range length {
						drafts := make([]sched.Draft, batch)
						for i := range drafts {
							drafts[i] = sched.Draft{Known: 100, Tokens: 15, Chance: c.Chance(&answers[i], 0)}
						}
						c.Allot(drafts, 16-batch)
						rows := batch
						for i, d := range drafts {
							if rows += d.Rows; d.Rows > 0 {
								c.Verified(&answers[i], 0, 1, 0)
							}
						}
						noise := 0.97 + 0.06*rng.Float64()
						c.Stepped(rows, 100*rows, times[rows-1]*noise/100)
						plain, took = plain+times[batch-1]*noise, took+times[rows-1]*noise
					}
				}
				if plain/took < 0.98 {
					t.Errorf("rows of %g steps, %d sequences, %d tokens: %.3f times plain speed", each, batch, length,
						plain/took)
				}
			}
		}
	}
}
