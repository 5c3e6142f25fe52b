package api

import (
	"crypto/sha256"
	"math"
	"time"
)

// Normalize gives a vector the length 1: how embeddings are compared. One of zeros stays. The sum
// of squares is taken in float64, in ascending order.
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

// Embedding asks a pooled model for the vectors, or the scores, of texts. They come as one of Texts
// and Prompts; what runs it reads Prompts alone, which are made of the other before.
type Embedding struct {
	Texts    []string
	Prompts  [][]int32 // token ids
	Rank     bool      // scores are wanted: how well each of Texts answers Query
	Query    string
	Truncate bool // what is longer than the context is cut, and not refused
	Class    Class
	Priority int32             // as that of a Request
	Salt     [sha256.Size]byte // as that of a Request
}

// Vectors are what a pooled model makes of texts, raw.
type Vectors struct {
	Rows         [][]float32 // of each text, in their order
	Tokens       int         // of all texts
	CachedTokens int         // of them, those that were computed before
	Queued       time.Duration
}

// Unpooled refuses a request for vectors of a model that makes none.
func Unpooled(what string) error {
	return &InvalidError{Message: "this model generates text and makes no " + what + ": its file names no pooling"}
}
