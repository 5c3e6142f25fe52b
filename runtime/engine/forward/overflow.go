package forward

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"sandwich/plans"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// OverflowError ends a request whose activations or cached values exceed the range of their type,
// so that its logits are not finite. Other requests continue.
type OverflowError struct {
	Place  string // op of the first overflow, such as "layer 3 (ffn down)"; empty if it was not found
	Narrow string // type of the KV cache, if the overflow is there; else empty
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

// Sound reports whether all numbers that led to LogitRows[i] of the last complete Forward are
// finite.
func (r *Runner) Sound(i int) bool { return r.last.Sound(i) }

// Overflow runs the token at a position of a sequence again and returns an *OverflowError with the
// first place of an overflow. It overwrites the activations of the last forward. It passes each
// part of the search, which ends with the next op, to withCores, which runs it while the workers
// are available; nil: they are.
func (r *Runner) Overflow(l *pool.Leader, withCores func(part func()), tables kvcache.Tables, pos int,
	token func(pos int) (int32, bool)) error {
	p := &r.phases[1]
	p.executor.Use(r.Buffers())
	team := &searchTeam{l: l, active: p.active, withCores: withCores}
	found, err := p.executor.FindOverflow(team, tables, pos, token)
	if err := errors.Join(err, team.err); err != nil {
		return err
	}
	return overflowAt(found, r.Plan)
}

// searchTeam is the team of the workers of a phase, which waits for them before each run.
type searchTeam struct {
	l         *pool.Leader
	active    []int
	withCores func(part func())
	err       error // why the workers could not run
}

func (t *searchTeam) Run(fn func(*pool.Worker)) { t.run(func() { t.l.Run(fn) }) }

func (t *searchTeam) RunTolerant(fn func(*pool.Worker)) { t.run(func() { t.l.RunTolerant(fn) }) }

func (t *searchTeam) run(part func()) {
	if t.withCores == nil {
		t.withCores = func(part func()) { part() }
	}
	t.withCores(func() {
		_, err := t.l.SetActive(t.active)
		if err == nil {
			part()
		}
		t.err = errors.Join(t.err, err)
	})
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

// opWords describes ops in error messages, by their names.
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

// placeOf describes an op with its layer, which is part of its name.
func placeOf(op *model.Op) string {
	rest, inLayer := strings.CutPrefix(op.Name, "blk.")
	if !inLayer {
		return wordsOf(op.Name)
	}
	layer, name, _ := strings.Cut(rest, ".")
	return fmt.Sprintf("layer %s (%s)", layer, wordsOf(name))
}

// wordsOf returns the description of an op by its name, or the name if it has none.
func wordsOf(name string) string { return cmp.Or(opWords[name], name) }
