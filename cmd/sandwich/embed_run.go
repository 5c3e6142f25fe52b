package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/engine"
	"sandwich/runtime/pool"
	"sandwich/runtime/tokenizer"
)

// maxEmbedContext is the most tokens of a text where no flag says it.
const maxEmbedContext = 8192

// embed makes what was asked for of texts, or of --tokens.
func (f *embedFlags) embed(ctx context.Context, s *session, texts []string, began time.Time) (*embedded, error) {
	if f.context == 0 {
		f.context = s.contextLimit(maxEmbedContext)
	}
	ids, err := f.ids(ctx, s, texts)
	if err != nil {
		return nil, usageError(err)
	}
	a := &embedded{Model: s.name, Pooling: s.pooling.String(), Normalized: !f.raw && !s.scores,
		Embeddings: make([]embeddedText, 0, len(ids))}
	err = s.withRunner(ctx, f.context, 1, func(r *engine.Runner, l *pool.Leader) error {
		if f.dimensions > r.Model.Outputs {
			return usageError(fmt.Errorf("--dimensions %d: the model makes %d numbers", f.dimensions, r.Model.Outputs))
		}
		a.Timings.Load = time.Since(began).Seconds()
		begin, line := time.Now(), engine.NewLine(r, l)
		for i, text := range ids {
			row, err := line.Pool(text, s.plan.Chunk)
			if err != nil {
				return err
			}
			row = slices.Clone(row)
			if f.dimensions > 0 {
				row = row[:f.dimensions]
			}
			if a.Normalized {
				api.Normalize(row)
			}
			a.Dimensions = len(row)
			a.Timings.Tokens += len(text)
			a.Embeddings = append(a.Embeddings, embeddedText{i, len(text), row})
		}
		a.Timings.Compute = time.Since(begin).Seconds()
		a.Timings.Rate = float64(a.Timings.Tokens) / a.Timings.Compute
		return nil
	})
	return a, err
}

// ids are the tokens of each text.
func (f *embedFlags) ids(ctx context.Context, s *session, texts []string) (ids [][]int32, err error) {
	for _, list := range f.tokens {
		text, err := parseTokens(list, s.shape.Vocab)
		if err != nil {
			return nil, err
		}
		ids = append(ids, text)
	}
	if len(texts) > 0 {
		if err := s.needTokenizer(); err != nil {
			return nil, err
		}
	}
	for _, text := range texts {
		one, err := s.tok.EncodeContext(ctx, nil, text, tokenizer.EncodeOptions{AddSpecial: true})
		if err != nil {
			return nil, err
		}
		ids = append(ids, one)
	}
	for i := range ids {
		switch n := len(ids[i]); {
		case n == 0:
			return nil, fmt.Errorf("text %d is empty: it comes to no token", i)
		case n > f.context && !f.truncate:
			return nil, fmt.Errorf("text %d has %d tokens and the context holds %d: shorten it, or cut it with "+
				"--truncate", i,
				n, f.context)
		case n > f.context:
			ids[i] = s.tok.Truncate(ids[i], f.context)
		}
	}
	return ids, nil
}

// floatBytes are numbers as little-endian float32.
func floatBytes(row []float32) (out []byte) {
	for _, v := range row {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}
