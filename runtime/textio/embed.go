package textio

import (
	"context"
	"slices"
	"sync"

	"sandwich/runtime/api"
	"sandwich/runtime/tokenizer"
)

// Prompts returns the tokens of each text of an embedding or reranking request, truncated to the
// context if the request asks for that. Up to four goroutines encode. Errors are those of Prompt.
func (e *Adapter) Prompts(ctx context.Context, r *api.Embedding) ([][]int32, error) {
	if r.Prompts != nil {
		return e.truncate(r, r.Prompts), nil
	}
	out, errs := make([][]int32, len(r.Texts)), make([]error, len(r.Texts))
	// Token counts in errors are exact up to twice the context.
	o := tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true, Limit: 2 * e.engine.Context()}
	forEach(len(r.Texts), func(i int) {
		out[i], errs[i] = e.limitLarge(ctx, r.Texts[i], func() ([]int32, error) {
			if r.Rank {
				return e.tok.EncodePair(ctx, r.Query, r.Texts[i], o.Limit)
			}
			return e.tok.EncodeContext(ctx, nil, r.Texts[i], o)
		})
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if r.Rank && slices.ContainsFunc(out, func(ids []int32) bool { return len(ids) > e.engine.Context() }) {
		return e.truncatePairs(ctx, r, out, o.Limit)
	}
	return e.truncate(r, out), nil
}

// truncatePairs truncates the documents of pairs if the request asks for it. It returns
// *api.TooLongError if the query leaves no room for a document.
func (e *Adapter) truncatePairs(ctx context.Context, r *api.Embedding, pairs [][]int32, limit int) ([][]int32, error) {
	alone, err := e.tok.EncodePair(ctx, r.Query, "", limit)
	if n := len(alone); err == nil && n >= e.engine.Context() {
		err = &api.TooLongError{PromptTokens: n, Context: e.engine.Context(), Text: true, AtLeast: n >= limit,
			Of: "the query without a document", Param: "query"}
	}
	for i := 0; r.Truncate && err == nil && i < len(pairs); i++ {
		pairs[i], err = e.tok.TruncatePair(ctx, pairs[i], r.Query, e.engine.Context())
	}
	return pairs, err
}

// truncate truncates texts to the context if the request asks for it.
func (e *Adapter) truncate(r *api.Embedding, texts [][]int32) [][]int32 {
	if r.Truncate {
		for i := range texts {
			texts[i] = e.tok.Truncate(texts[i], e.engine.Context())
		}
	}
	return texts
}

// fewTexts is the number of texts up to which the calling goroutine encodes alone.
const fewTexts = 8

// forEach calls f for the numbers below n, from up to four goroutines.
func forEach(n int, f func(i int)) {
	if n <= fewTexts {
		for i := range n {
			f(i)
		}
		return
	}
	var group sync.WaitGroup
	const goroutines = 4
	for g := range goroutines {
		group.Go(func() {
			for i := g; i < n; i += goroutines {
				f(i)
			}
		})
	}
	group.Wait()
}
