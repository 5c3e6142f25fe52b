package llm

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
	"sandwich/runtime/model/cost"
	"sandwich/topotree"
)

// llmCeiling is the rate of a test in which every op runs at the ceiling of its own arithmetic.
type llmCeiling struct {
	rate   float64         // tokens per second
	made   map[string]bool // the ceilings that bound some op
	memory float64         // fraction of the time that is bound by memory
	routed float64         // fraction of the time of the products of experts
}

// ceilingOf returns the ceiling of a test. It fails if the profile lacks a ceiling.
func ceilingOf(host *profiles.Profile, m *model.Model, p *plans.Plan, t Test) (llmCeiling, error) {
	pus := p.Decode.PUs
	if t.Prefill {
		pus = p.Prefill.PUs
	}
	return ceilingOver(host, m, p, pus, t.forwards(p.Chunk), t.counted())
}

// ceilingOver returns the ceiling of forwards with the given number of tokens on some PUs.
func ceilingOver(host *profiles.Profile, m *model.Model, p *plans.Plan, pus topotree.CPUSet, forwards []cost.Rows,
	tokens float64) (llmCeiling, error) {
	work, err := cost.NewWork(m, p)
	if err != nil {
		return llmCeiling{}, err
	}
	isa, set, machine := p.Widest(), pus, roofline.NewMachine(host)
	ceilings, err := machine.CoreCeilings(set, isa, p.Arithmetics())
	if err != nil {
		return llmCeiling{}, err
	}
	attention := p.Attention.Arithmetic()
	if more, err := machine.CoreCeilings(set, isa, []string{attention}); err == nil {
		maps.Copy(ceilings, more)
	} else { // not measured
		attention = microkernel.ComputeF32.Ceiling()
	}
	out := llmCeiling{made: map[string]bool{}}
	seconds, memory, routed := 0.0, 0.0, 0.0
	for _, rows := range forwards {
		for _, task := range work.Of(rows) {
			if task.Attends {
				task.Compute = attention
			}
			r := ceilings[task.Compute]
			took := r.Seconds(r.Targets[0], task.Work)
			seconds += took
			if task.Routed {
				routed += took
			}
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
	out.rate, out.memory, out.routed = tokens/seconds, memory/seconds, routed/seconds
	return out, nil
}

// AtMost returns the rate, in tokens per second, of a test under a plan in which every op of the
// model runs at the ceiling of its own arithmetic, and the names of the ceilings that bound some
// op. It fails if the profile lacks a ceiling.
func AtMost(host *profiles.Profile, m *model.Model, p *plans.Plan, t Test) (rate float64, ceiling string, err error) {
	r, err := ceilingOf(host, m, p, t)
	return r.rate, r.String(), err
}

// ExpertsShare returns the fraction of the time of a test that the products of experts take, if
// every op runs at the ceiling of its own arithmetic. It fails if the profile lacks a ceiling.
func ExpertsShare(host *profiles.Profile, m *model.Model, p *plans.Plan, t Test) (float64, error) {
	r, err := ceilingOf(host, m, p, t)
	return r.routed, err
}

// forwards returns the forwards of a prompt, chunk by chunk, or one decode step in the middle of
// the test, because the time to read the cache grows linearly with the steps.
func (t Test) forwards(chunk int) []cost.Rows {
	if !t.Prefill {
		step := cost.Rows{Heads: t.Batch}
		for range t.Batch {
			step.Spans = append(step.Spans, cost.Span{Pos: t.Middle(), N: 1})
		}
		return []cost.Rows{step}
	}
	var out []cost.Rows
	for pos := 0; pos < t.Tokens; pos += chunk {
		out = append(out, cost.Rows{Spans: []cost.Span{{Pos: t.Depth + pos, N: min(chunk, t.Tokens-pos)}}})
	}
	out[len(out)-1].Heads = 1
	return out
}

// Middle returns the position in the middle of what a test generates.
func (t Test) Middle() int { return t.Depth + (t.Tokens-1)/2 }

// counted returns the number of tokens of these forwards.
func (t Test) counted() float64 {
	if t.Prefill {
		return float64(t.Tokens)
	}
	return float64(t.Batch)
}

// String lists the ceilings that bound some op.
func (r llmCeiling) String() string { return strings.Join(slices.Sorted(maps.Keys(r.made)), " + ") }

// above explains a rate above the ceiling, or returns "" for other rates.
func (r llmCeiling) above(rate float64) string {
	switch {
	case rate <= r.rate:
		return ""
	case r.memory > 0.5:
		return "above the memory ceiling: weights lie in cache, or memory was busier while it was measured"
	}
	return "above the compute ceiling: something else ran while it was measured"
}
