package engine

import (
	"fmt"
	"math"

	"sandwich/runtime/api"
)

// constrain is logits without the tokens that are not allowed; allowed has a bit for each token and
// is nil where all are.
func (d *draft) constrain(logits []float32, allowed []uint64) []float32 {
	if allowed == nil {
		return logits
	}
	if &logits[0] != &d.logits[0] {
		copy(d.logits, logits)
	}
	never := float32(math.Inf(-1))
	for i, w := range allowed {
		if w == math.MaxUint64 {
			continue
		}
		for j, end := 64*i, min(64*i+64, len(d.logits)); j < end; j++ {
			if w>>(j%64)&1 == 0 {
				d.logits[j] = never
			}
		}
	}
	for j := 64 * len(allowed); j < len(d.logits); j++ {
		d.logits[j] = never // padding behind the vocabulary
	}
	return d.logits
}

// allowed are the tokens that may follow; nil for all.
func (j *job) allowed() []uint64 {
	if j.req.Constraint == nil {
		return nil
	}
	return j.req.Constraint.Allowed(j.limit - j.made)
}

// follows goes on behind a token. It tells whether the answer is whole with it.
func (j *job) follows(id int32) (whole bool, err error) {
	c := j.req.Constraint
	if c == nil {
		return false, nil
	}
	if err := c.Accept(id); err != nil {
		const text = "the vocabulary of the model cannot spell an answer of this form: %v"
		return false, &api.InvalidError{Param: j.req.Format.Param, Message: fmt.Sprintf(text, err)}
	}
	return c.MustEnd(), nil
}
