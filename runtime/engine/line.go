package engine

import (
	"fmt"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
)

// Line is one sequence on a runner of its own, without a scheduler: what perplexity, benchmarks and
// logits dumps use. Methods are called inside Runner.Lead.
type Line struct {
	r     *Runner
	l     *pool.Leader
	cache *kvcache.Cache
	seq   *kvcache.Sequence
	pos   int
	fed   []int32 // the tokens up to pos
	batch kvcache.Batch
}

// NewLine returns an empty sequence that may use every KV block of the runner.
func NewLine(r *Runner, l *pool.Leader) *Line {
	line := &Line{r: r, l: l, cache: r.assembly.NewCache()}
	line.seq = line.cache.Open(kvcache.Salt{})
	return line
}

// Reset empties the sequence.
func (s *Line) Reset() {
	s.cache.Free(s.seq)
	s.seq, s.pos = s.cache.Open(kvcache.Salt{}), 0
}

// Pos is the number of tokens fed so far.
func (s *Line) Pos() int { return s.pos }

// Wanted says for which tokens of a Feed logits are computed.
type Wanted uint8

// What a Feed may want.
const (
	LastLogits Wanted = iota
	AllLogits
	NoLogits
)

// Feed appends tokens in prefill chunks of at most the given size, or at once where the model reads
// a text at once, and calls visit for each wanted position with its logits, which are valid during
// the call.
func (s *Line) Feed(tokens []int32, chunk int, want Wanted, visit func(pos int, logits []float32) error) error {
	if s.r.Model.AtOnce() {
		chunk = len(tokens)
	}
	for len(tokens) > 0 {
		n := min(chunk, len(tokens))
		last := n == len(tokens)
		if err := s.forward(tokens[:n], true, want == AllLogits, last && want != NoLogits); err != nil {
			return err
		}
		for i, row := range s.batch.LogitRows {
			if err := visit(s.pos+int(row), s.r.Logits(i)); err != nil {
				return err
			}
		}
		s.advance(n)
		tokens = tokens[n:]
	}
	return nil
}

// Pool forgets what was fed and returns what a pooled model answers to a text, raw, valid until the
// next forward.
func (s *Line) Pool(tokens []int32, chunk int) (answer []float32, err error) {
	s.Reset()
	err = s.Feed(tokens, chunk, LastLogits, func(_ int, row []float32) error {
		answer = row
		return nil
	})
	return answer, err
}

// Step appends one token in the decode phase and returns the logits behind it, valid until the next
// forward.
func (s *Line) Step(token int32) ([]float32, error) {
	if err := s.forward([]int32{token}, false, false, true); err != nil {
		return nil, err
	}
	s.advance(1)
	return s.r.Logits(0), nil
}

// Pass goes on behind n positions that nobody computed (kvcache.Cache.Pass).
func (s *Line) Pass(n int) error {
	if !s.cache.Reserve(s.seq, s.pos+n) {
		return s.tooLong(n)
	}
	s.cache.Pass(s.seq, n, s.r.Plan.Chunk)
	s.fed = append(s.fed[:s.pos], make([]int32, n)...)
	s.pos += n
	return nil
}

// tooLong says that n more tokens are too many.
func (s *Line) tooLong(n int) error {
	return fmt.Errorf("%d tokens do not fit a context of %d", s.pos+n, s.r.Blocks()*kvcache.BlockTokens)
}

func (s *Line) advance(n int) {
	s.cache.Advance(s.seq, n)
	s.pos += n
}

func (s *Line) forward(tokens []int32, prefill, all, last bool) error {
	if most := s.r.Blocks() * kvcache.BlockTokens; s.pos+len(tokens) > most || !s.cache.Reserve(s.seq,
		s.pos+len(tokens)) {
		return s.tooLong(len(tokens))
	}
	s.cache.Cover(s.seq, s.pos+len(tokens))
	b := &s.batch
	b.Reset()
	b.Prefill = prefill
	b.Tokens = append(b.Tokens, tokens...)
	b.AddSpan(s.seq, kvcache.Span{Rows: len(tokens), Pos: s.pos})
	for i := range tokens {
		if all || last && i == len(tokens)-1 {
			b.LogitRows = append(b.LogitRows, int32(i))
		}
	}
	s.fed = append(s.fed[:s.pos], tokens...)
	if _, err := s.r.Forward(s.l, b, 0, nil); err != nil {
		return err
	}
	for i, row := range b.LogitRows {
		if !s.r.sound(i) {
			fed := func(pos int) (int32, bool) { return s.fed[pos], true }
			return s.r.overflow(s.l, b.Spans[0].Tables, s.pos+int(row), fed)
		}
	}
	return nil
}
