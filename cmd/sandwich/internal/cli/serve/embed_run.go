package serve

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/runtime/api"
	"sandwich/runtime/session"
	"sandwich/runtime/tokenizer"
)

// maxEmbedContext is the default limit of the tokens of a text.
const maxEmbedContext = 8192

// embed computes the results for texts, or for --tokens, on an engine whose context fits the
// longest one.
func (f *embedFlags) embed(ctx context.Context, s *session.Session, texts []string, began time.Time) (*embedded,
	error) {
	if f.context == 0 {
		f.context = s.ContextLimit(maxEmbedContext)
	}
	ids, longest, err := f.ids(ctx, s, texts)
	if err != nil {
		return nil, exit.Usage(err)
	}
	const parallel = 4
	e, err := s.Engine(ctx, session.Sizes{Context: longest, Parallel: parallel, Queue: parallel})
	if err != nil {
		return nil, exit.Model(err)
	}
	defer e.Close()
	a := &embedded{Model: s.Name, Pooling: s.Pooling.String(), Normalized: !f.raw && !s.Scores,
		Dimensions: e.Runner().Model.Outputs, Embeddings: make([]embeddedText, 0, len(ids))}
	switch {
	case f.dimensions > a.Dimensions:
		return nil, exit.Usage(fmt.Errorf("--dimensions %d exceeds the %d elements of the model's embeddings",
			f.dimensions, a.Dimensions))
	case f.dimensions > 0:
		a.Dimensions = f.dimensions
	}
	a.Timings.Load = time.Since(began).Seconds()
	begin := time.Now()
	v, err := e.Embed(ctx, api.Embedding{Prompts: ids, Rank: s.Scores})
	if err != nil {
		return nil, err
	}
	a.Timings.Compute, a.Timings.Tokens = time.Since(begin).Seconds(), v.Tokens
	a.Timings.Rate = float64(v.Tokens) / a.Timings.Compute
	for i, row := range v.Rows {
		row = row[:a.Dimensions]
		if a.Normalized {
			api.Normalize(row)
		}
		a.Embeddings = append(a.Embeddings, embeddedText{i, len(ids[i]), row})
	}
	return a, nil
}

// ids returns the tokens of each text and the length of the longest.
func (f *embedFlags) ids(ctx context.Context, s *session.Session, texts []string) (ids [][]int32, longest int,
	err error) {
	for _, list := range f.tokens {
		text, err := parseTokens(list, s.Shape.Vocab)
		if err != nil {
			return nil, 0, err
		}
		ids = append(ids, text)
	}
	if len(texts) > 0 {
		if err := s.CheckTokenizer(); err != nil {
			return nil, 0, err
		}
	}
	for _, text := range texts {
		one, err := s.Tok.EncodeContext(ctx, nil, text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
		if err != nil {
			return nil, 0, err
		}
		ids = append(ids, one)
	}
	for i := range ids {
		switch n := len(ids[i]); {
		case n == 0:
			return nil, 0, fmt.Errorf("text %d is empty; give at least one token", i)
		case n > f.context && !f.truncate:
			return nil, 0, fmt.Errorf("text %d has %d tokens, which exceeds the context of %d; shorten it, or "+
				"give --truncate", i, n, f.context)
		case n > f.context:
			ids[i] = s.Tok.Truncate(ids[i], f.context)
		}
		longest = max(longest, len(ids[i]))
	}
	return ids, longest, nil
}

// floatBytes encodes numbers as little-endian float32.
func floatBytes(row []float32) (out []byte) {
	for _, v := range row {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}
