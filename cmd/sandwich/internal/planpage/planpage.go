// Package planpage describes the plan of a session for the page of the server.
package planpage

import (
	"fmt"
	"strings"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/summary"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/server/status"
	"sandwich/runtime/session"
	"sandwich/tuner/candidates"
	"sandwich/tuner/measure/llm"
)

// promptTokens and generatedTokens are the lengths of the tests whose ceilings are shown.
const (
	promptTokens    = 512
	generatedTokens = 64
)

// Of describes the plan of a session whose engine runs up to parallel requests at a time. Parts
// that cannot be determined are left out.
func Of(s *session.Session, parallel int) *status.Plan {
	p := s.Plan
	out := &status.Plan{Model: s.Name, Version: build.Version(), Text: !p.Model.Pooled(), Name: p.Name,
		Tuned: p.Tuned, Verdict: string(s.Verdict.Judgement), Reasons: s.Verdict.Reasons, Ranks: []status.Rank{},
		Prefill: status.Phase{PUs: p.Prefill.PUs, Ceilings: []status.Ceiling{}},
		Decode:  status.Phase{PUs: p.Decode.PUs, Ceilings: []status.Ceiling{}}}
	state := bundle.Untuned
	if s.Bundle != nil {
		state = s.Bundle.State()
		addStory(out, s.Bundle)
	}
	out.State, out.Headline = string(state), summary.Headline(p, state)
	if host := s.Profile; host != nil {
		out.CPU = host.Host.CPUModel
		if host.Machine != nil && host.Machine.Tree != nil {
			out.Tree = host.Machine.Tree.Root()
		}
		addCeilings(out, s, parallel)
	}
	for _, r := range p.Ranks {
		out.Ranks = append(out.Ranks, status.Rank{PUs: r.PUs, Node: r.NUMANode})
	}
	out.Facts = factsOf(p)
	return out
}

// factsOf lists the settings of a plan that change speed or results.
func factsOf(p *plans.Plan) []status.Fact {
	exact := "yes: the same bits on every machine"
	if why := p.Rounding(); why != "" {
		exact = "no: " + why
	}
	facts := []status.Fact{
		{Name: "instruction set", Text: p.Widest()},
		{Name: "arithmetic", Text: strings.Join(p.Arithmetics(), ", ")},
		{Name: "KV cache", Text: fmt.Sprint(p.KV)},
		{Name: "prefill chunk", Text: fmt.Sprintf("%d tokens", p.Chunk)},
		{Name: "exact", Text: exact},
	}
	if p.Model.Pooled() {
		return facts
	}
	facts = append(facts, status.Fact{Name: "tuned decode rows", Text: fmt.Sprintf("up to %d", p.BatchMax)})
	if text := p.PlacementText(); text != "" {
		facts = append(facts, status.Fact{Name: "devices", Text: text})
	}
	return facts
}

// addCeilings adds the ceilings of a prompt and of decode steps of up to parallel sequences.
func addCeilings(out *status.Plan, s *session.Session, parallel int) {
	ops, err := arch.ModelOf(s.File)
	if err != nil {
		return // the ceilings are then unknown
	}
	profile := s.Profile
	if len(profile.Ceilings) == 0 && s.Bundle != nil {
		profile = &s.Bundle.Host // the figures that tune measured
	}
	host, assumed := candidates.Complete(profile, s.Plan.Widest(), s.Plan.Arithmetics())
	out.Assumed = assumed
	tests := llm.Tests([]int{promptTokens}, nil, nil, 1)
	if out.Text {
		for rows := 1; ; rows = min(2*rows, parallel) {
			tests = append(tests, llm.Tests(nil, []int{generatedTokens}, nil, rows)...)
			if rows >= parallel {
				break
			}
		}
	}
	for _, t := range tests {
		rate, by, err := llm.AtMost(host, ops, s.Plan, t)
		if err != nil {
			continue
		}
		of, rows := &out.Decode, t.Batch
		if t.Prefill {
			of, rows = &out.Prefill, t.Tokens
		}
		of.Ceilings = append(of.Ceilings, status.Ceiling{Test: t.Name, Rows: rows, Rate: rate, By: by})
	}
}
