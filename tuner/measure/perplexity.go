package measure

import (
	"context"
	"math"

	"sandwich/runtime/engine"
)

// Score is how well a model predicts a text; its JSON is stable.
type Score struct {
	Model      string  `json:"model"` // the caller's to fill in
	Window     int     `json:"ctx"`
	Windows    int     `json:"windows"`
	Tokens     int     `json:"tokens"` // scored
	NLL        float64 `json:"nll"`    // mean negative log-likelihood of them
	Error      float64 `json:"nll_error"`
	Perplexity float64 `json:"perplexity"`
	Rate       float64 `json:"tokens_per_second"` // evaluated, loading included; the caller's, too
	sum, sum2  float64
}

// ScoreOptions say how a text is cut and fed.
type ScoreOptions struct {
	Window int   // tokens of a window
	Start  int32 // token that each window starts with instead of its own; below 0: none
	Chunk  int   // rows of a forward whose logits nobody wants
	Rows   int   // of one whose logits all count
	Step   func()
}

// ScoreText is the perplexity of a model on a text, as llama-perplexity estimates it: the tokens are
// cut into windows, an incomplete last one being dropped, and the second half of each is scored. It
// evaluates on a line of a runner with room for a window. `sandwich bench perplexity` prints it.
func ScoreText(ctx context.Context, line *engine.Line, ids []int32, o ScoreOptions) (*Score, error) {
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

// add scores the ids behind the middle of a window, each from the logits one position before.
func (o *Score) add(ctx context.Context, line *engine.Line, ids []int32, chunk, rows int) error {
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

// negativeLogLikelihood is -log softmax(logits)[id].
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
