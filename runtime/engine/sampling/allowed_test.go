package sampling

import (
	"math"
	"math/rand/v2"
	"testing"

	"sandwich/runtime/api"
)

// TestDrawOfSet checks that sampling from a set of tokens equals sampling from logits in which all
// other tokens are -Inf, by each method, and that the set of all tokens changes nothing.
func TestDrawOfSet(t *testing.T) {
	skipUnderRace(t)
	rng := rand.New(rand.NewPCG(5, 1))
	const vocab = 9001
	d := testBuffer(t, vocab)
	for round := range 400 {
		logits, masked := make([]float32, vocab), make([]float32, vocab)
		for i := range logits {
			logits[i] = float32(rng.NormFloat64() * []float64{0.1, 3, 20}[round%3])
			if rng.IntN(9) == 0 {
				logits[i] = logits[rng.IntN(i+1)]
			}
		}
		allowed := make(allowedSet, (vocab+63)/64)
		share := []float64{0, 0.0005, 0.1, 0.6, 0.99, 1}[rng.IntN(6)]
		for i := range vocab {
			masked[i] = float32(math.Inf(-1))
			if share == 1 || rng.Float64() < share {
				allowed[i/64] |= 1 << (i % 64)
				masked[i] = logits[i]
			}
		}
		how := api.Sampling{Temperature: []float32{0, 0.7, 1, 3}[rng.IntN(4)],
			TopK: []int{0, 1, 5, 40, 900}[rng.IntN(5)], TopP: 0.9 + 0.2*rng.Float32(), Seed: uint64(round)}
		if rng.IntN(4) == 0 {
			how.RepeatPenalty = 1.3
		}
		prompt := []int32{1, 5, 77}
		got := New(how, prompt).Next(logits, allowed, d)
		if want := New(how, prompt).Next(masked, nil, d); got != want {
			t.Fatalf("round %d: %+v of a share of %g: token %d, want %d", round, how, share, got, want)
		}
	}
}

// skipUnderRace skips a test that is slow with the race detector and has no concurrency.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("slow with the race detector, and runs one goroutine; run without -race")
	}
}
