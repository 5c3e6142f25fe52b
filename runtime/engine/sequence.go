package engine

import (
	"context"
	"fmt"

	"sandwich/runtime/engine/forward"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
)

// Sequence runs one sequence of tokens on a Runner without a scheduler, for perplexity, benchmarks
// and logits dumps. Its methods must be called inside Runner.Lead.
type Sequence struct {
	r     *forward.Runner
	l     *pool.Leader
	cache *kvcache.Cache
	seq   *kvcache.Sequence
	pos   int
	fed   []int32 // tokens of the positions below pos
	batch kvcache.Batch
	ctx   context.Context // of forwards on a device
	via   *Accelerator    // runs the forwards of some phases; nil: none
}

// NewSequence returns an empty sequence that may use all KV blocks of the runner.
func NewSequence(r *forward.Runner, l *pool.Leader) *Sequence {
	s := &Sequence{r: r, l: l, cache: r.Assembly().NewCache()}
	s.seq = s.cache.Open(kvcache.Salt{})
	return s
}

// Through lets a device run the forwards of its phases until ctx ends. nil changes nothing.
func (s *Sequence) Through(ctx context.Context, a *Accelerator) { s.ctx, s.via = ctx, a }

// Reset empties the sequence.
func (s *Sequence) Reset() {
	s.cache.Free(s.seq)
	s.seq, s.pos = s.cache.Open(kvcache.Salt{}), 0
}

// Pos returns the number of tokens in the sequence.
func (s *Sequence) Pos() int { return s.pos }

// Wanted selects the tokens of a Feed or of a forward whose logits are computed.
type Wanted uint8

// Selections of logits.
const (
	LastLogits Wanted = iota
	AllLogits
	NoLogits
)

// Feed appends tokens in prefill chunks of at most chunk tokens, or in one chunk if the model needs
// a whole text in one forward. It calls visit for each wanted position with its logits, which are
// valid during the call, and returns visit's error. It fails if the tokens do not fit the context,
// and with *OverflowError.
func (s *Sequence) Feed(tokens []int32, chunk int, want Wanted, visit func(pos int, logits []float32) error) error {
	if s.r.Model.WholeText() {
		chunk = len(tokens)
	}
	for len(tokens) > 0 {
		n, wanted := min(chunk, len(tokens)), want
		if want == LastLogits && n < len(tokens) {
			wanted = NoLogits
		}
		if err := s.forward(tokens[:n], phase.Prefill, wanted); err != nil {
			return err
		}
		for i, row := range s.batch.LogitRows {
			if err := visit(s.pos+int(row), s.logits(i)); err != nil {
				return err
			}
		}
		s.advance(n)
		tokens = tokens[n:]
	}
	return nil
}

// Pool resets the sequence, feeds a text and returns the output row of a pooled model, without
// post-processing. The row is valid until the next forward.
func (s *Sequence) Pool(tokens []int32, chunk int) (answer []float32, err error) {
	s.Reset()
	err = s.Feed(tokens, chunk, LastLogits, func(_ int, row []float32) error {
		answer = row
		return nil
	})
	return answer, err
}

// Step appends one token in the decode phase and returns its logits, which are valid until the next
// forward.
func (s *Sequence) Step(token int32) ([]float32, error) {
	if err := s.forward([]int32{token}, phase.Decode, LastLogits); err != nil {
		return nil, err
	}
	s.advance(1)
	return s.logits(0), nil
}

// logits returns the logits of LogitRows[i] of the last forward.
func (s *Sequence) logits(i int) []float32 {
	if s.via.runs(&s.batch) {
		return s.via.on.Logits(i)
	}
	return s.r.Logits(i)
}

// Pass advances the sequence by n positions without computing them, for benchmarks at a given
// length (kvcache.Cache.Pass).
func (s *Sequence) Pass(n int) error {
	if !s.cache.Reserve(s.seq, s.pos+n) {
		return s.tooLong(n)
	}
	s.cache.Pass(s.seq, n, s.r.Plan.Chunk)
	s.fed = append(s.fed[:s.pos], make([]int32, n)...)
	s.pos += n
	return nil
}

// tooLong returns the error for n more tokens than the context has room for.
func (s *Sequence) tooLong(n int) error {
	return fmt.Errorf("%d tokens do not fit a context of %d", s.pos+n, s.r.Blocks()*kvcache.BlockTokens)
}

// advance counts n tokens as computed.
func (s *Sequence) advance(n int) {
	s.cache.Advance(s.seq, n)
	s.pos += n
}

// prepare makes the batch of a forward of a phase that computes the next tokens.
func (s *Sequence) prepare(tokens []int32, p phase.Phase, want Wanted) error {
	end := s.pos + len(tokens)
	if end > s.r.Blocks()*kvcache.BlockTokens || !s.cache.Reserve(s.seq, end) {
		return s.tooLong(len(tokens))
	}
	s.cache.Cover(s.seq, end)
	b := &s.batch
	b.Reset()
	b.Prefill = p == phase.Prefill
	b.Tokens = append(b.Tokens, tokens...)
	b.AddSpan(s.seq, kvcache.Span{Rows: len(tokens), Pos: s.pos})
	for i := range tokens {
		if want == AllLogits || want == LastLogits && i == len(tokens)-1 {
			b.LogitRows = append(b.LogitRows, int32(i))
		}
	}
	s.fed = append(s.fed[:s.pos], tokens...)
	return nil
}

// forward runs one batch of tokens; see prepare.
func (s *Sequence) forward(tokens []int32, p phase.Phase, want Wanted) error {
	if err := s.prepare(tokens, p, want); err != nil {
		return err
	}
	b := &s.batch
	if s.via != nil {
		if onDevice, err := s.via.Forward(s.ctx, s.l, b); err != nil || onDevice {
			return err // the device has checked that the logits are finite
		}
	} else if _, err := s.r.Forward(s.l, b, 0, nil); err != nil {
		return err
	}
	for i, row := range b.LogitRows {
		if !s.r.Sound(i) {
			fed := func(pos int) (int32, bool) { return s.fed[pos], true }
			return s.r.Overflow(s.l, nil, b.Spans[0].Tables, s.pos+int(row), fed)
		}
	}
	return nil
}
