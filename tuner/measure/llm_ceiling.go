package measure

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/topotree"
)

// llmCeiling is the rate at which a test would run if every op ran at the ceiling of its own arithmetic.
type llmCeiling struct {
	rate   float64         // tokens per second
	made   map[string]bool // the ceilings that bound some op
	memory float64         // share of the time that is bound by memory
}

// ceilingOf fails where the profile lacks a ceiling.
func ceilingOf(host *profiles.Profile, m *model.Model, p *plans.Plan, t Test) (llmCeiling, error) {
	pus := p.Decode.PUs
	if t.Prefill {
		pus = p.Prefill.PUs
	}
	return ceilingOver(host, m, p, pus, t.forwards(p.Chunk), t.counted())
}

// ceilingOver is the ceiling of forwards of so many tokens on some PUs.
func ceilingOver(host *profiles.Profile, m *model.Model, p *plans.Plan, pus plans.PUSet, forwards []model.Rows,
	tokens float64) (llmCeiling, error) {
	work, err := model.NewWork(m, p)
	if err != nil {
		return llmCeiling{}, err
	}
	isa, set, machine := p.Widest(), topotree.NewCPUSet(pus...), roofline.NewMachine(host)
	ceilings, err := machine.CoreCeilings(set, isa, p.Arithmetics())
	if err != nil {
		return llmCeiling{}, err
	}
	attention := attentionArithmetic(p.Attention)
	if more, err := machine.CoreCeilings(set, isa, []string{attention}); err == nil {
		maps.Copy(ceilings, more)
	} else { // nobody measured it
		attention = microkernel.ComputeF32.Ceiling()
	}
	out := llmCeiling{made: map[string]bool{}}
	seconds, memory := 0.0, 0.0
	for _, rows := range forwards {
		for _, task := range work.Of(rows) {
			if task.Attends {
				task.Compute = attention
			}
			r := ceilings[task.Compute]
			took := r.Seconds(r.Targets[0], task.Work)
			seconds += took
			if task.Intensity() < r.Ridge(r.Targets[0]) {
				memory += took
				out.made["memory "+profiles.FormatRate(r.Bandwidth, "B/s")] = true
				continue
			}
			unit := "FLOP/s"
			if task.Compute == microkernel.ComputeInt8.String() {
				unit = "OP/s"
			}
			out.made[isa+" "+task.Compute+" "+profiles.FormatRate(r.Targets[0].Peak, unit)] = true
		}
	}
	if seconds == 0 {
		return llmCeiling{}, errors.New("the model has no products")
	}
	out.rate, out.memory = tokens/seconds, memory/seconds
	return out, nil
}

// AtMost is the rate, in tokens a second, that a machine can have at most with a plan, if every op
// of the model runs at the ceiling of its own arithmetic, and what that ceiling is made of. It fails
// where the profile lacks a ceiling.
func AtMost(host *profiles.Profile, m *model.Model, p *plans.Plan, t Test) (rate float64, ceiling string, err error) {
	r, err := ceilingOf(host, m, p, t)
	return r.rate, r.String(), err
}

// forwards are those of a prompt, chunk by chunk, or one step of generation in the middle of the
// text: reading the cache grows evenly with the steps.
func (t Test) forwards(chunk int) []model.Rows {
	if !t.Prefill {
		step := model.Rows{Heads: t.Batch}
		for range t.Batch {
			step.Spans = append(step.Spans, model.Span{Pos: t.Middle(), N: 1})
		}
		return []model.Rows{step}
	}
	var out []model.Rows
	for pos := 0; pos < t.Tokens; pos += chunk {
		out = append(out, model.Rows{Spans: []model.Span{{Pos: t.Depth + pos, N: min(chunk, t.Tokens-pos)}}})
	}
	out[len(out)-1].Heads = 1
	return out
}

// Middle is the position in the middle of what a test generates.
func (t Test) Middle() int { return t.Depth + (t.Tokens-1)/2 }

// counted is the tokens of these forwards.
func (t Test) counted() float64 {
	if t.Prefill {
		return float64(t.Tokens)
	}
	return float64(t.Batch)
}

// String lists what the ceiling is made of.
func (r llmCeiling) String() string { return strings.Join(slices.Sorted(maps.Keys(r.made)), " + ") }

// above says why a rate is higher than the ceiling; "" where it is not.
func (r llmCeiling) above(rate float64) string {
	switch {
	case rate <= r.rate:
		return ""
	case r.memory > 0.5:
		return "above the memory ceiling: weights lie in cache, or memory was busier while it was measured"
	}
	return "above the compute ceiling: something else ran while it was measured"
}
