// Package summary describes bundles for users: the content of `plan show`, and PUs in words.
package summary

import (
	"fmt"
	"slices"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/topotree"
)

// Summary is the content of `plan show`, as text and as stable JSON.
type Summary struct {
	Name        string            `json:"name"`
	Version     int               `json:"version"`
	Tuned       bool              `json:"tuned"`
	State       bundle.State      `json:"state"`
	Exact       bool              `json:"exact"`
	Rounding    string            `json:"rounding,omitempty"` // why it is not exact
	Unit        string            `json:"unit,omitempty"`     // measured rates of the matrix unit that kernels use
	Fingerprint string            `json:"fingerprint"`
	Content     string            `json:"content"` // hash of plan.yaml's content
	CPU         string            `json:"cpu"`
	ISA         []string          `json:"isa"` // features that the kernels need
	Model       string            `json:"model"`
	Pooled      bool              `json:"pooled,omitempty"` // the decode phase is unused
	ModelDigest string            `json:"model_digest"`
	KV          string            `json:"kv"`
	Attention   string            `json:"attention"` // its dot product
	SeqMax      int               `json:"seq_max"`
	BatchMax    int               `json:"batch_max"`
	Chunk       int               `json:"chunk"`
	Service     Service           `json:"service"`
	Placement   []plans.Placement `json:"placement,omitempty"` // ops on devices
	Classes     []plans.Class     `json:"classes,omitempty"`   // of workers with their own tables
	Weights     []Weight          `json:"weights"`
	Prefill     []Table           `json:"prefill"`
	Decode      []Table           `json:"decode"`
	Evidence    *Evidence         `json:"evidence,omitempty"` // nil for a default plan
	Speculation *Speculation      `json:"speculation,omitempty"`
}

// Service is the service configuration with derived values.
type Service struct {
	Ranks      []plans.Rank    `json:"ranks"`
	TP         int             `json:"tp"`
	PrefillPUs topotree.CPUSet `json:"prefill_pus"`
	DecodePUs  topotree.CPUSet `json:"decode_pus"`
}

// Weight is a weight's compute path with the derived chain.
type Weight struct {
	plans.WeightPlan
	Chain plans.Chain `json:"chain"`
}

// Table is one kernel table in text.
type Table struct {
	Weight  string `json:"weight"`
	Class   string `json:"class,omitempty"` // absent: the main class
	Compute string `json:"compute"`
	Rules   []Rule `json:"rules"`
}

// Rule is one line of a kernel table.
type Rule struct {
	M      string `json:"m"`
	Kernel string `json:"kernel"`
	Slice  string `json:"slice"`
	Ways   string `json:"ways"` // "dynamic" or WaysMxWaysN
	Pack   bool   `json:"pack"`
	Widen  bool   `json:"widen"`
}

// Evidence summarizes the evidence.
type Evidence struct {
	Build     string             `json:"build"`
	Created   string             `json:"created"`
	Strategy  string             `json:"strategy"`
	Effort    string             `json:"effort"`
	Seed      uint64             `json:"seed"`
	Budget    float64            `json:"budget_s"`
	Spent     float64            `json:"spent_s"`
	Noise     float64            `json:"aa_noise"`
	Trials    int                `json:"trials"`
	EarlyStop string             `json:"early_stop,omitempty"`
	Outcomes  []evidence.Outcome `json:"outcomes"`
	Finalists []evidence.Arm     `json:"finalists"`
	Rejected  int                `json:"rejected"`
}

// Speculation has the times of decode steps by their number of rows and what follows from them.
type Speculation struct {
	Estimated bool                 `json:"estimated,omitempty"` // from ceilings; else measured by `tune`
	Steps     []evidence.StepCurve `json:"decode_steps"`        // by context length
	Drafts    []evidence.Expected  `json:"expected_speeds"`     // of one sequence at the first context length
	Long      []evidence.Expected  `json:"expected_speeds_at_the_longest_context,omitempty"`
}

// SpeculationOf returns the speculation of a plan from the times of its decode steps, nil if they
// are unknown.
func SpeculationOf(steps []evidence.StepCurve, estimated bool) *Speculation {
	if len(steps) == 0 {
		return nil
	}
	s := &Speculation{Estimated: estimated, Steps: steps, Drafts: evidence.ExpectedSpeeds(steps[0].Ratios)}
	if n := len(steps); n > 1 {
		s.Long = evidence.ExpectedSpeeds(steps[n-1].Ratios)
	}
	return s
}

// Of returns a summary of a bundle.
func Of(b *bundle.Bundle) Summary {
	p := &b.Plan
	s := Summary{
		Name: p.Name, Version: p.Version, Tuned: p.Tuned, State: b.State(),
		Exact: p.Exact(), Rounding: b.Rounding(), Unit: b.Unit(), Fingerprint: p.Fingerprint, Content: p.Digest(),
		CPU: b.Host.Host.CPUModel, ISA: plans.MissingFeatures(p.Needs(),
			0), Model: p.Model.Name, Pooled: p.Model.Pooled(),
		ModelDigest: p.Model.Digest(), KV: p.KV.String(), Attention: p.Attention.String(), SeqMax: p.SeqMax,
		BatchMax: p.BatchMax, Chunk: p.Chunk,
		Service: Service{p.Ranks,
			p.TP(), p.Prefill.PUs, p.Decode.PUs},
		Placement: p.Placement, Classes: p.Classes, Prefill: tablesOf(&p.Prefill), Decode: tablesOf(&p.Decode),
	}
	for _, w := range p.Weights {
		s.Weights = append(s.Weights, Weight{w, plans.ChainOf(w.Compute)})
	}
	if e := &b.Evidence; e.Version != 0 {
		s.Evidence = &Evidence{
			Build: e.Build, Created: e.Created, Strategy: e.Strategy, Effort: e.Effort, Seed: e.Seed, Budget: e.Budget,
			Spent: e.Spent,
			Noise: e.Noise, Trials: e.Trials, EarlyStop: e.EarlyStop,
			Outcomes: e.Outcomes(), Finalists: slices.Clone(e.Finalists), Rejected: len(e.Rejected),
		}
		s.Speculation = SpeculationOf(e.StepCurves(p.BatchMax, &p.Model), false)
	}
	return s
}

func tablesOf(p *plans.Phase) []Table {
	var out []Table
	for _, t := range p.Tables {
		st := Table{Weight: t.WeightKey.String(), Class: t.Class}
		for _, r := range t.Rules {
			st.Compute = r.Schedule.Kernel.Compute.String()
			y := r.Schedule.Text()
			if y.Ways == "" {
				y.Ways = "dynamic"
			}
			st.Rules = append(st.Rules, Rule{M: r.Span(), Kernel: y.Kernel, Slice: y.Slice, Ways: y.Ways,
				Pack: y.Pack, Widen: r.Schedule.Widen})
		}
		out = append(out, st)
	}
	return out
}

// Headline describes the plan in one line, for logs.
func Headline(p *plans.Plan, state bundle.State) string {
	how := string(state)
	if why := p.Rounding(); why != "" {
		how += ", " + why
	}
	ranks := ""
	if n := p.TP(); n > 1 {
		ranks = fmt.Sprintf("%d ranks, ", n)
	}
	classes := ""
	for _, c := range p.Classes {
		classes += ", class " + c.String()
	}
	phases := "prefill on PUs " + p.Prefill.PUs.String()
	if !p.Model.Pooled() {
		phases += ", decode on PUs " + p.Decode.PUs.String()
	}
	if text := p.PlacementText(); text != "" {
		phases += ", " + text
	}
	return fmt.Sprintf("plan %s (%s): %s%s, %s cache%s", p.Name, how, ranks, phases, p.KV, classes)
}
