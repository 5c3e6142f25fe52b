package api

import (
	"crypto/sha256"
	"math"
	"time"
)

// Normalize scales v in place to Euclidean length 1. A zero vector stays zero. The sum of squares
// is computed in float64 in ascending order, so results are the same on every machine.
func Normalize(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	by := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * by)
	}
}

// Embedding is a request for the vectors or scores of texts. Callers set either Texts or Prompts.
// The engine reads only Prompts; the owner of the tokenizer derives them from Texts.
type Embedding struct {
	Texts    []string
	Prompts  [][]int32 // token ids
	Rank     bool      // return scores of how well each of Texts answers Query instead of vectors
	Query    string
	Truncate bool // cut texts that exceed the context instead of refusing them
	Class    Class
	Priority int32             // like Request.Priority
	Salt     [sha256.Size]byte // like Request.Salt
}

// Vectors is the result of an Embedding. Rows are not normalized.
type Vectors struct {
	Rows         [][]float32 // one row per text, in request order
	Tokens       int         // tokens of all texts
	CachedTokens int         // of Tokens, those taken from the prefix cache
	Queued       time.Duration
}

// Unpooled returns the error for a request for vectors or scores, named by what, of a model that
// only generates text.
func Unpooled(what string) error {
	return &InvalidError{Message: "this model generates text and cannot return " + what +
		": its file has no pooling type"}
}
