package engine

import (
	"fmt"

	"sandwich/runtime/api"
)

// allowed returns the tokens that the constraint of the request allows next; nil allows all.
func (j *job) allowed() []uint64 {
	if j.req.Constraint == nil {
		return nil
	}
	return j.req.Constraint.Allowed(j.limit - j.generated)
}

// only returns the next token if the constraint allows no other and its logits are not requested.
func (j *job) only() (int32, bool) {
	if j.req.Constraint == nil || j.req.Logprobs {
		return 0, false
	}
	return j.req.Constraint.Only(j.limit - j.generated)
}

// follows passes a token to the constraint of the request. It reports whether the answer is
// complete with it.
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
