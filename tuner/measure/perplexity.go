package measure

import (
	"context"
	"math"

	"sandwich/runtime/engine"
)

// Score is how well a model predicts a text. Its JSON is stable.
type Score struct {
	Model      string  `json:"model"` // set by the caller
	Window     int     `json:"ctx"`
	Windows    int     `json:"windows"`
	Tokens     int     `json:"tokens"` // scored
	NLL        float64 `json:"nll"`    // mean negative log-likelihood
	Error      float64 `json:"nll_error"`
	Perplexity float64 `json:"perplexity"`
	Rate       float64 `json:"tokens_per_second"` // evaluated, including loading; set by the caller
	sum, sum2  float64
}

// ScoreOptions configure how a text is divided and evaluated.
type ScoreOptions struct {
	Window int   // tokens of a window
	Start  int32 // replaces the first token of each window; below 0: none
	Chunk  int   // rows of a forward without logits
	Rows   int   // rows of a forward with logits
	Step   func()
}

// ScoreText returns the perplexity of a model on a text by the method of llama-perplexity: it
// divides the tokens into windows, drops an incomplete last one, and scores the second half of
// each. The runner of line must hold a window. `sandwich bench perplexity` prints the score.
func ScoreText(ctx context.Context, line *engine.Sequence, ids []int32, o ScoreOptions) (*Score, error) {
	out := &Score{Window: o.Window, Windows: len(ids) / o.Window}
	for w := range out.Windows {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		part := ids[w*o.Window : (w+1)*o.Window]
		if o.Start >= 0 {
			part[0] = o.Start
		}
		if err := out.add(ctx, line, part, o.Chunk, o.Rows); err != nil {
			return nil, err
		}
		o.Step()
	}
	out.finish()
	return out, nil
}

// add scores the ids in the second half of a window, each from the logits of the position before.
func (o *Score) add(ctx context.Context, line *engine.Sequence, ids []int32, chunk, rows int) error {
	first := len(ids) / 2
	line.Reset()
	if err := line.Feed(ids[:first], chunk, engine.NoLogits, nil); err != nil {
		return err
	}
	return line.Feed(ids[first:len(ids)-1], rows, engine.AllLogits, func(pos int, logits []float32) error {
		nll := negativeLogLikelihood(logits, ids[pos+1])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.Tokens++
		o.sum += nll
		o.sum2 += nll * nll
		return nil
	})
}

// negativeLogLikelihood returns -log softmax(logits)[id].
func negativeLogLikelihood(logits []float32, id int32) float64 {
	best := float64(math.Inf(-1))
	for _, v := range logits {
		best = max(best, float64(v))
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - best)
	}
	return best + math.Log(sum) - float64(logits[id])
}

func (o *Score) finish() {
	n := float64(o.Tokens)
	o.NLL = o.sum / n
	o.Perplexity = math.Exp(o.NLL)
	if o.Tokens > 1 {
		o.Error = math.Sqrt(max(0, o.sum2/n-o.NLL*o.NLL) / (n - 1))
	}
}
