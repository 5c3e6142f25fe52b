// Package sampling draws tokens from logits: penalties, constraints, temperature, top-k, top-p and
// min-p.
package sampling

import (
	"math"
	"math/rand/v2"
	"slices"

	"sandwich/runtime/api"
)

// rowMath has the vector kernels that sampling uses (microkernel.Vec), over a row as wide as the
// vocabulary.
type rowMath interface {
	Max(x *float32, n int) float32
	Argmax(x *float32, n int) int
	ExpSum(x *float32, n int, scale, max float32) float32
	SelectAbove(x *float32, n int, t float32, idx *int32, room int) int
}

// Sampler draws the tokens of one request. It counts drawn tokens if penalties need that.
type Sampler struct {
	api.Sampling
	rng   *rand.Rand
	count map[int32]int // how often a token was generated, 0 for those of the prompt alone; nil while no penalty is set
}

// New returns the sampler of a request with the given parameters and prompt.
func New(s api.Sampling, prompt []int32) *Sampler {
	out := &Sampler{Sampling: s, rng: rand.New(rand.NewPCG(s.Seed, 0x5a4d))}
	repeat := s.RepeatPenalty != 0 && s.RepeatPenalty != 1
	if repeat || s.FrequencyPenalty != 0 || s.PresencePenalty != 0 {
		out.count = map[int32]int{}
	}
	if repeat {
		for _, id := range prompt {
			out.count[id] = 0
		}
	}
	return out
}

// Buffer is the working memory of a draw, shared by all requests of an engine.
type Buffer struct {
	vec        rowMath
	logits     []float32 // copy of a row with penalties, or the logits of allowed tokens
	tokens     []int32   // ids of the allowed tokens in logits
	candidates []candidate
	index      []int32
}

// candidate is a token that may be drawn, with its logit and unnormalized probability.
type candidate struct {
	id    int32
	logit float32
	p     float64
}

// NewBuffer returns a buffer for a vocabulary of vocab tokens. vec holds the vector kernels
// (microkernel.Vec).
func NewBuffer(vec rowMath, vocab int) *Buffer {
	return &Buffer{vec: vec, logits: make([]float32, vocab), index: make([]int32, max(selectRoom, vocab)+16)}
}

// selectRoom is the number of candidates above which rank sorts the whole vocabulary.
const selectRoom = 2048

// Next draws a token. allowed has a bit for each allowed token; nil allows all.
func (s *Sampler) Next(logits []float32, allowed []uint64, d *Buffer) int32 {
	logits = s.penalize(logits, d)
	if allowed != nil {
		return s.Count(s.nextOf(logits, allowed, d))
	}
	if !(s.Temperature > 0) || s.TopK == 1 {
		return s.Count(int32(d.vec.Argmax(&logits[0], len(logits))))
	}
	candidates := s.limit(d.rank(logits, s.TopK, s.Temperature))
	return s.Count(s.draw(candidates))
}

// Count counts a token for penalties and returns it.
func (s *Sampler) Count(id int32) int32 {
	if s.count != nil {
		s.count[id]++
	}
	return id
}

func (s *Sampler) penalize(logits []float32, d *Buffer) []float32 {
	if len(s.count)+len(s.Bias) == 0 {
		return logits
	}
	copy(d.logits, logits)
	for id, n := range s.count {
		l := &d.logits[id]
		if r := s.RepeatPenalty; r != 0 && *l > 0 {
			*l /= r
		} else if r != 0 {
			*l *= r
		}
		if n > 0 {
			*l -= float32(n)*s.FrequencyPenalty + s.PresencePenalty
		}
	}
	for id, b := range s.Bias {
		d.logits[id] += b // last, so that no penalty takes a ban back
	}
	return d.logits
}

// rank returns the candidates with the largest logits, largest first (ties by id), at most k (0:
// any number). Tokens exp(-20) times less likely than the best at this temperature cannot matter
// and are left out.
func (d *Buffer) rank(logits []float32, k int, temperature float32) []candidate {
	best := d.vec.Max(&logits[0], len(logits))
	for _, width := range []float32{4, 8, 20} {
		if k == 0 && width < 20 {
			continue
		}
		n := d.vec.SelectAbove(&logits[0], len(logits), best-width*max(1, temperature), &d.index[0], selectRoom)
		if n > selectRoom {
			break
		}
		if width == 20 || k > 0 && n >= k {
			return d.sorted(logits, d.index[:n], k)
		}
	}
	if k > 0 && k <= selectRoom/16 {
		return d.largest(logits, k)
	}
	all := d.index[:0]
	for i, l := range logits {
		if l > float32(math.Inf(-1)) {
			all = append(all, int32(i))
		}
	}
	return d.sorted(logits, all, k)
}

// largest returns the n largest logits, largest first (ties by id), in one pass. It is efficient
// for small n.
func (d *Buffer) largest(logits []float32, n int) []candidate {
	d.candidates = d.candidates[:0]
	threshold := float32(math.Inf(-1)) // logit that a further candidate must exceed
	for i, l := range logits {
		if !(l > threshold) {
			continue
		}
		at, _ := slices.BinarySearchFunc(d.candidates, l, func(c candidate, l float32) int {
			if c.logit >= l {
				return -1
			}
			return 1
		})
		if len(d.candidates) == n {
			d.candidates = d.candidates[:n-1]
		}
		d.candidates = slices.Insert(d.candidates, at, candidate{id: int32(i), logit: l})
		if len(d.candidates) == n {
			threshold = d.candidates[n-1].logit
		}
	}
	return d.candidates
}

// sorted returns the candidates with the given ids, largest logit first (ties by id), at most k (0:
// any number).
func (d *Buffer) sorted(logits []float32, ids []int32, k int) []candidate {
	d.candidates = d.candidates[:0]
	for _, id := range ids {
		d.candidates = append(d.candidates, candidate{id: id, logit: logits[id]})
	}
	slices.SortFunc(d.candidates, func(a, b candidate) int {
		switch {
		case a.logit > b.logit:
			return -1
		case a.logit < b.logit:
			return 1
		}
		return int(a.id - b.id)
	})
	if k > 0 && len(d.candidates) > k {
		d.candidates = d.candidates[:k]
	}
	return d.candidates
}

// limit applies top-p and min-p to ranked candidates.
func (s *Sampler) limit(c []candidate) []candidate {
	if s.TopP > 0 && s.TopP < 1 {
		sum := weigh(c, 1)
		reached := 0.0
		for i := range c {
			reached += c[i].p
			if reached >= float64(s.TopP)*sum {
				c = c[:i+1]
				break
			}
		}
	}
	if s.MinP > 0 && len(c) > 0 {
		minimum := c[0].logit + float32(math.Log(float64(s.MinP)))
		keep := slices.IndexFunc(c, func(x candidate) bool { return x.logit < minimum })
		if keep > 0 {
			c = c[:keep]
		}
	}
	return c
}

// weigh sets the unnormalized probabilities at a temperature and returns their sum.
func weigh(c []candidate, temperature float64) (sum float64) {
	for i := range c {
		c[i].p = math.Exp(float64(c[i].logit-c[0].logit) / temperature)
		sum += c[i].p
	}
	return sum
}

// draw draws one of some ranked candidates by their probabilities.
func (s *Sampler) draw(c []candidate) int32 {
	if len(c) == 0 {
		return 0 // all logits are NaN or -Inf; Argmax returns 0 as well
	}
	at := s.rng.Float64() * weigh(c, float64(s.Temperature))
	for _, x := range c {
		if at -= x.p; at < 0 {
			return x.id
		}
	}
	return c[len(c)-1].id
}

// Logprobs returns the log probability of a token and of the n most likely ones.
func (d *Buffer) Logprobs(logits []float32, id int32, n int) (api.TokenLogprob, []api.TokenLogprob) {
	best := d.vec.Max(&logits[0], len(logits))
	norm := best + float32(math.Log(float64(d.vec.ExpSum(&logits[0], len(logits), 1, best))))
	own := api.TokenLogprob{ID: id, Logprob: logits[id] - norm}
	if n == 0 {
		return own, nil
	}
	var top []api.TokenLogprob
	for _, c := range d.largest(logits, n) {
		top = append(top, api.TokenLogprob{ID: c.id, Logprob: c.logit - norm})
	}
	return own, top
}
