package main

import (
	"fmt"
	"strings"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/topotree"
)

// llmRoof is the rate at which a test would run if every op ran at the roof of its own arithmetic.
type llmRoof struct {
	rate   float64         // tokens per second
	made   map[string]bool // the roofs that bound some op
	memory float64         // share of the time that is bound by memory
}

// roof is that of the session's model, whose file says more than its shape (windows of layers).
func (s *session) roof(p *plans.Plan, t llmTest) (llmRoof, error) {
	c, err := model.ConfigOf(s.file)
	if err != nil {
		return llmRoof{}, err
	}
	m, err := c.Model()
	if err != nil {
		return llmRoof{}, err
	}
	return roofOf(s.profile, m, p, t)
}

// roofOf fails where the profile lacks a ceiling.
func roofOf(host *profiles.Profile, m *model.Model, p *plans.Plan, t llmTest) (llmRoof, error) {
	work, err := model.NewWork(m, p)
	if err != nil {
		return llmRoof{}, err
	}
	pus := p.Decode.PUs
	if t.prefill {
		pus = p.Prefill.PUs
	}
	isa := p.Widest()
	roofs, err := roofline.NewMachine(host).CoreRoofs(topotree.NewCPUSet(pus...), isa, p.Arithmetics())
	if err != nil {
		return llmRoof{}, err
	}
	out := llmRoof{made: map[string]bool{}}
	seconds, memory := 0.0, 0.0
	for _, rows := range t.forwards(p.Chunk) {
		for _, task := range work.Of(rows) {
			r := roofs[task.Compute]
			took := r.Seconds(r.Targets[0], task.Work)
			seconds += took
			if task.Intensity() < r.Ridge(r.Targets[0]) {
				memory += took
				out.made["memory "+formatRate(r.Bandwidth, "B/s")] = true
				continue
			}
			unit := "FLOP/s"
			if task.Compute == microkernel.ComputeInt8.String() {
				unit = "OP/s"
			}
			out.made[isa+" "+task.Compute+" "+formatRate(r.Targets[0].Peak, unit)] = true
		}
	}
	if seconds == 0 {
		return llmRoof{}, fmt.Errorf("the model has no products")
	}
	out.rate, out.memory = t.counted()/seconds, memory/seconds
	return out, nil
}

// forwards are those of a prompt, chunk by chunk, or one step of generation in the middle of the
// text: reading the cache grows evenly with the steps.
func (t llmTest) forwards(chunk int) []model.Rows {
	if !t.prefill {
		step := model.Rows{Heads: t.batch}
		for range t.batch {
			step.Spans = append(step.Spans, model.Span{Pos: (t.tokens - 1) / 2, N: 1})
		}
		return []model.Rows{step}
	}
	var out []model.Rows
	for pos := 0; pos < t.tokens; pos += chunk {
		out = append(out, model.Rows{Spans: []model.Span{{Pos: pos, N: min(chunk, t.tokens-pos)}}})
	}
	out[len(out)-1].Heads = 1
	return out
}

// counted is the tokens of these forwards.
func (t llmTest) counted() float64 {
	if t.prefill {
		return float64(t.tokens)
	}
	return float64(t.batch)
}

// String lists what the roof is made of.
func (r llmRoof) String() string { return strings.Join(sortedKeys(r.made), " + ") }

// above says why a rate is higher than the roof; "" where it is not.
func (r llmRoof) above(rate float64) string {
	switch {
	case rate <= r.rate:
		return ""
	case r.memory > 0.5:
		return "above the memory roof: weights lie in cache, or memory was busier while it was measured"
	}
	return "above the compute roof: something else ran while it was measured"
}
