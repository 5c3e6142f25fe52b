package sampling

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/microkernel"
	"sandwich/runtime/api"
)

func testBuffer(t testing.TB, vocab int) *Buffer {
	t.Helper()
	vec, err := microkernel.NewVec(microkernel.Go)
	if err != nil {
		t.Fatal(err)
	}
	return NewBuffer(vec, vocab)
}

// TestPenalties checks that each penalty changes the logits by its definition, and only those of
// the tokens that it applies to.
func TestPenalties(t *testing.T) {
	logits := []float32{2, -2, 1, 0.5, 3, -1, 0, 4}
	d := testBuffer(t, len(logits))
	for _, c := range []struct {
		name string
		s    api.Sampling
		want []float32 // with prompt 0, 1 and answer 1, 4, 4
	}{
		{"none", api.Sampling{}, logits},
		{"repeat", api.Sampling{RepeatPenalty: 2}, []float32{1, -4, 1, 0.5, 1.5, -1, 0, 4}},
		{"frequency", api.Sampling{FrequencyPenalty: 0.5}, []float32{2, -2.5, 1, 0.5, 2, -1, 0, 4}},
		{"presence", api.Sampling{PresencePenalty: 0.5}, []float32{2, -2.5, 1, 0.5, 2.5, -1, 0, 4}},
		{"all", api.Sampling{RepeatPenalty: 2, FrequencyPenalty: 1, PresencePenalty: 0.5}, []float32{1, -5.5, 1, 0.5,
			-1, -1, 0, 4}},
		{"bias", api.Sampling{Bias: map[int32]float32{4: -100, 0: 1}}, []float32{3, -2, 1, 0.5, -97, -1, 0, 4}},
		{"bias behind penalties", api.Sampling{RepeatPenalty: 2, Bias: map[int32]float32{4: 1}}, []float32{1, -4, 1,
			0.5,
			2.5, -1, 0, 4}},
	} {
		s := New(c.s, []int32{0, 1})
		for _, id := range []int32{1, 4, 4} {
			s.Count(id)
		}
		if got := s.penalize(logits, d); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if logits[4] != 3 {
		t.Error("the model's own logits were changed")
	}
}

// TestPenaltyTurnsLoops checks that greedy sampling with a penalty leaves a token that it would
// otherwise repeat forever.
func TestPenaltyTurnsLoops(t *testing.T) {
	logits := []float32{1, 1.5, 1.4, 0}
	d := testBuffer(t, len(logits))
	s := New(api.Sampling{PresencePenalty: 0.3}, nil)
	var got []int32
	for range 3 {
		got = append(got, s.Next(logits, nil, d))
	}
	if !slices.Equal(got, []int32{1, 2, 1}) {
		t.Errorf("drawn %v, want 1, then 2 since 1 was there, then 1 again since both were", got)
	}
}

// TestRankAgainstSort compares the selected candidates with those of a sort of the whole
// vocabulary.
func TestRankAgainstSort(t *testing.T) {
	skipUnderRace(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		vocab := 1 + rng.IntN(9000)
		logits := make([]float32, vocab)
		spread := []float64{0.01, 1, 6, 60}[round%4]
		for i := range logits {
			logits[i] = float32(rng.NormFloat64() * spread)
			if rng.IntN(20) == 0 {
				logits[i] = logits[rng.IntN(i+1)] // ties
			}
			if rng.IntN(50) == 0 {
				logits[i] = float32(math.Inf(-1))
			}
		}
		d := testBuffer(t, vocab)
		want := reference64(logits)
		for _, k := range []int{0, 1, 5, 40, 100, 3000} {
			got := d.rank(logits, k, 1)
			all := want
			if k > 0 {
				all = want[:min(k, len(want))]
			}
			// Tokens that are left out are less than exp(-20) times as likely as the best one.
			if len(got) < len(all) && all[len(got)].logit >= all[0].logit-20 || len(got) > len(all) {
				t.Fatalf("vocabulary %d, spread %g, k %d: %d candidates of %d", vocab, spread, k, len(got), len(all))
			}
			for i := range got {
				if got[i].id != all[i].id {
					t.Fatalf("vocabulary %d, spread %g, k %d: candidate %d is %v, want %v", vocab, spread, k, i,
						got[i], all[i])
				}
			}
		}
		if got := d.largest(logits, 20); !slices.Equal(got, want[:min(20, len(want))]) {
			t.Fatalf("vocabulary %d: the 20 largest are %v, want %v", vocab, got, want[:min(20, len(want))])
		}
	}
}

func reference64(logits []float32) (out []candidate) {
	for i, l := range logits {
		if !math.IsInf(float64(l), -1) {
			out = append(out, candidate{id: int32(i), logit: l})
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		switch {
		case a.logit > b.logit:
			return -1
		case a.logit < b.logit:
			return 1
		}
		return 0
	})
	return out
}

// TestLimits checks that top-p keeps the smallest set with probability p, and min-p the tokens at
// least p times as likely as the best one.
func TestLimits(t *testing.T) {
	logOf := func(p ...float64) (out []float32) {
		for _, x := range p {
			out = append(out, float32(math.Log(x)))
		}
		return out
	}
	logits := logOf(0.05, 0.5, 0.15, 0.3)
	d := testBuffer(t, len(logits))
	for _, c := range []struct {
		s    api.Sampling
		want []int32
	}{
		{api.Sampling{}, []int32{1, 3, 2, 0}},
		{api.Sampling{TopK: 2}, []int32{1, 3}},
		{api.Sampling{TopP: 0.5}, []int32{1}},
		{api.Sampling{TopP: 0.79}, []int32{1, 3}},
		{api.Sampling{TopP: 0.81}, []int32{1, 3, 2}},
		{api.Sampling{TopP: 1}, []int32{1, 3, 2, 0}},
		{api.Sampling{MinP: 0.2}, []int32{1, 3, 2}},
		{api.Sampling{MinP: 0.7}, []int32{1}},
		{api.Sampling{TopP: 0.81, MinP: 0.5}, []int32{1, 3}},
	} {
		s := New(c.s, nil)
		var got []int32
		for _, x := range s.limit(d.rank(logits, s.TopK, 1)) {
			got = append(got, x.id)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v keeps %v, want %v", c.s, got, c.want)
		}
	}
}

// TestDrawFollowsProbabilities draws often and compares the counts with the probabilities at two
// temperatures.
func TestDrawFollowsProbabilities(t *testing.T) {
	logits := []float32{0, 1, 2, -1}
	d := testBuffer(t, len(logits))
	for _, temperature := range []float32{0.7, 1.5} {
		s := New(api.Sampling{Temperature: temperature, Seed: 1}, nil)
		const draws = 40000
		var counts [4]int
		for range draws {
			counts[s.Next(logits, nil, d)]++
		}
		sum := 0.0
		for _, l := range logits {
			sum += math.Exp(float64(l / temperature))
		}
		for i, l := range logits {
			p := math.Exp(float64(l/temperature)) / sum
			if sigma := math.Sqrt(p * (1 - p) * draws); math.Abs(float64(counts[i])-p*draws) > 5*sigma {
				t.Errorf("temperature %v: token %d was drawn %d times, expected %.0f +- %.0f", temperature, i,
					counts[i], p*draws, sigma)
			}
		}
	}
}

// TestDrawOfNothing checks that logits without a finite value give token 0 and no panic, and that
// negative temperatures are greedy.
func TestDrawOfNothing(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, logits := range [][]float32{{nan, nan, nan}, {inf, inf, inf}} {
		d := testBuffer(t, 3)
		for _, s := range []api.Sampling{{}, {Temperature: 1}, {Temperature: 1, TopK: 2, TopP: 0.5, MinP: 0.5}} {
			if id := New(s, nil).Next(logits, nil, d); id < 0 || id > 2 {
				t.Errorf("%v with %+v gave token %d", logits, s, id)
			}
		}
	}
	if id := New(api.Sampling{Temperature: -1}, nil).Next([]float32{0, 3, 1}, nil, testBuffer(t, 3)); id != 1 {
		t.Errorf("a negative temperature drew %d, not the best", id)
	}
}
