package engine

import (
	"cmp"
	"fmt"
	"strings"

	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// OverflowError ends a request whose numbers leave the range that they are computed or cached in:
// no token can be drawn from what is no number. Other requests go on.
type OverflowError struct {
	Place  string // "layer 3 (ffn down)"; empty where it was not found
	Narrow string // type of the KV cache, where that is what is too narrow
}

func (e *OverflowError) Error() string {
	in := ""
	if e.Place != "" {
		in = " in " + e.Place
	}
	if e.Narrow != "" {
		return fmt.Sprintf("the model's numbers overflow%s: its keys or values do not fit a KV cache of %s, run "+
			"it with --kv f32",
			in, e.Narrow)
	}
	return fmt.Sprintf("the model's numbers overflow%s: its weights are damaged or beyond what float32 can hold, "+
		"get the file again from its source", in)
}

// sound tells whether the numbers behind LogitRows[i] of the last Forward that ended are finite.
func (r *Runner) sound(i int) bool { return r.last.Sound(i) }

// overflow looks for the place where the token at a position of a sequence overflows. The
// activations of the last forward are lost.
func (r *Runner) overflow(l *pool.Leader, tables kvcache.Tables, pos int, token func(pos int) (int32, bool)) error {
	p := &r.phases[1]
	if _, err := l.SetActive(p.active); err != nil {
		return err
	}
	p.executor.Use(r.sets[r.use])
	found, err := p.executor.FindOverflow(l, tables, pos, token)
	if err != nil {
		return err
	}
	return overflowAt(found, r.Plan)
}

func overflowAt(found *exec.Overflow, plan *plans.Plan) *OverflowError {
	switch {
	case found == nil:
		return &OverflowError{}
	case found.Cached:
		return &OverflowError{Place: fmt.Sprintf("layer %d (KV cache)", found.Op.Layer), Narrow: plan.KV.String()}
	}
	return &OverflowError{Place: placeOf(found.Op)}
}

// opWords are ops in the words of a reader.
var opWords = map[string]string{
	"embed": "the embedding", "output_norm": "the output norm", "head": "the head",
	"attn_norm": "attention norm", "qkv": "attention q, k and v", "rotate": "rotation", "attention": "attention",
	"o":       "attention output",
	"conv.in": "convolution input", "conv": "convolution", "conv.out": "convolution output",
	"delta.in": "delta rule input", "delta.conv": "convolution and decays", "delta": "delta rule",
	"gate": "output gate", "delta.out": "delta rule output",
	"ffn_norm": "ffn norm", "gate_up": "ffn gate and up", "down": "ffn down", "router": "router",
	"experts.gate_up": "experts gate and up", "experts.down": "experts down", "combine": "sum of experts",
}

// placeOf says where an op stands in the model; its name has the layer that its weights are of.
func placeOf(op *model.Op) string {
	rest, inLayer := strings.CutPrefix(op.Name, "blk.")
	if !inLayer {
		return wordsOf(op.Name)
	}
	layer, name, _ := strings.Cut(rest, ".")
	return fmt.Sprintf("layer %s (%s)", layer, wordsOf(name))
}

// wordsOf is the op's own name where a family calls it by one that is not listed.
func wordsOf(name string) string { return cmp.Or(opWords[name], name) }

// unsound is a job whose row of the last forward holds what is no number.
type unsound struct {
	job *job
	row int // of the batch
}

// fail ends the jobs whose numbers overflowed, each with the place. Their sequences hold their
// blocks until the next step of the scheduler, for which the lock is kept meanwhile: some
// milliseconds that only a broken model costs.
func (c *cores) fail(list []unsound) {
	for _, u := range list {
		for i := range c.batch.Spans {
			s := &c.batch.Spans[i]
			if u.row < s.Row || u.row >= s.Row+s.Rows {
				continue
			}
			token := func(pos int) (int32, bool) {
				if at := s.Row + pos - s.Pos; at >= s.Row && at < s.Row+s.Rows {
					return c.batch.Tokens[at], true
				}
				if pos < len(u.job.req.Prompt) {
					return u.job.req.Prompt[pos], true
				}
				return 0, false
			}
			u.job.out.close("", c.runner.overflow(c.leader, s.Tables, s.Pos+u.row-s.Row, token))
		}
	}
}
