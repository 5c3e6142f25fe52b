// Package llm times prompts and generations of a model under interleaved plans, and compares them
// with their ceilings.
package llm

import (
	"context"
	"strconv"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/counters"
	"sandwich/runtime/energy"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/tuner/measure/spread"
)

// Test is one kind of work of a model: a prompt, or tokens generated one by one.
type Test struct {
	Name    string
	Prefill bool
	Tokens  int // of the prompt, or generated per sequence
	Batch   int
	Depth   int // positions before them in each sequence, with arbitrary contents
}

// Tests returns the tests with the names of llama-bench: pp512, tg64, tg64 @ d4096. Lengths of 0
// are omitted; without depths all begin at 0.
func Tests(prompts, generated, depths []int, batch int) (out []Test) {
	if len(depths) == 0 {
		depths = []int{0}
	}
	for _, depth := range depths {
		behind := ""
		if depth > 0 {
			behind = " @ d" + strconv.Itoa(depth)
		}
		for _, n := range prompts {
			if n > 0 {
				out = append(out, Test{"pp" + strconv.Itoa(n) + behind, true, n, 1, depth})
			}
		}
		for _, n := range generated {
			if n > 0 {
				out = append(out, Test{"tg" + strconv.Itoa(n) + behind, false, n, batch, depth})
			}
		}
	}
	return out
}

// Positions returns the number of KV positions of the largest test, over all its sequences.
func Positions(tests []Test) int {
	largest := 1
	for _, t := range tests {
		largest = max(largest, kvcache.BlocksFor(t.Depth+t.Tokens)*kvcache.BlockTokens*t.Batch)
	}
	return largest
}

// Options configure LLM.
type Options struct {
	Arms  []*Arm
	Tests []Test
	Reps  int

	Model string
	Ops   *model.Model // model from whose work the ceilings are estimated; nil: no ceilings
	Vocab int
	Host  *profiles.Profile // may have measured ceilings

	Meter    *energy.Meter    // of the machine and the device; nil: no energy
	Neighbor *NeighborProcess // may be nil
	Step     func()           // called after each of len(Tests)*len(Arms)*(Reps+1) samples
}

// Run measures each test under the arms interleaved, without and with the neighbor if there is one.
// The first sample of each warms up. `sandwich bench llm` prints the rows.
func Run(ctx context.Context, o Options) ([]Row, error) {
	var rows []Row
	for _, t := range o.Tests {
		samples := make([]llmSamples, len(o.Arms))
		for rep := range o.Reps + 1 {
			for i, a := range o.Arms {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err := o.sampleAgain(ctx, a, t, rep == 0, &samples[i]); err != nil {
					return nil, err
				}
				o.Step()
			}
		}
		for i, a := range o.Arms {
			rows = append(rows, o.row(a, t, &samples[i]))
		}
	}
	return rows, nil
}

// sampleAgain is sample, except that it begins the test again if the device is lost, so that all
// samples are those of the cores.
func (o *Options) sampleAgain(ctx context.Context, a *Arm, t Test, warming bool, to *llmSamples) error {
	before := a.Device.Lost()
	if err := o.sample(ctx, a, t, warming, to); err != nil || a.Device.Lost() == before {
		return err
	}
	*to = llmSamples{}
	return o.sample(ctx, a, t, warming, to)
}

// Row is the result of one arm in one test. Its JSON is stable.
type Row struct {
	Test      string    `json:"test"`
	Threads   int       `json:"threads"`
	Batch     int       `json:"batch"`
	Depth     int       `json:"depth,omitempty"`   // positions before the test
	Rate      float64   `json:"tokens_per_second"` // median
	Min       float64   `json:"min"`
	Max       float64   `json:"max"`
	Samples   []float64 `json:"samples"`
	Model     string    `json:"model"`
	Plan      string    `json:"plan"` // untuned, or the name of the tuned plan
	Tuned     bool      `json:"tuned"`
	TP        int       `json:"tp"`
	KV        string    `json:"kv"`
	PUs       string    `json:"pus"`
	Ceiling   float64   `json:"ceiling_tokens_per_second,omitempty"`
	CeilingOf string    `json:"ceiling,omitempty"`       // the ceilings that bound some op
	Above     string    `json:"above_ceiling,omitempty"` // why the rate exceeds the ceiling, if it does
	OnDevice  bool      `json:"on_device,omitempty"`     // the device of the session ran the test
	CPU       string    `json:"cpu"`

	// DeviceLost says why the cores ran the test instead of the device.
	DeviceLost string `json:"device_lost,omitempty"`

	// Energy of a token of the test, by the counters of the whole machine and the device.
	JoulesPerToken float64        `json:"joules_per_token,omitempty"`
	JoulesOf       string         `json:"joules_of,omitempty"`           // sources that it adds
	Energy         energy.Reading `json:"energy,omitempty"`              // of all samples
	NoEnergy       string         `json:"energy_not_readable,omitempty"` // why JoulesPerToken is 0
	// BySource has the joules per token of each readable source.
	BySource map[string]float64 `json:"joules_per_token_by_source,omitempty"`

	Lost     LostRow           `json:"lost"` // zero without disturbance
	Counters []counters.Figure `json:"counters,omitempty"`
	Neighbor *NeighborRow      `json:"neighbor,omitempty"`
}

func (o *Options) row(a *Arm, t Test, s *llmSamples) Row {
	pus := a.phasePUs(t)
	sp := spread.Summarize(s.alone)
	r := Row{Test: t.Name, Threads: pus.Count(), Batch: t.Batch, Depth: t.Depth, Rate: sp.Median,
		Min: sp.Min, Max: sp.Max, Samples: s.alone, Lost: s.quiet, Model: o.Model, Plan: a.Name, Tuned: a.Plan.Tuned,
		TP: a.Plan.TP(), KV: a.Plan.KV.String(), PUs: pus.String(), CPU: o.Host.Host.CPUModel}
	if r.OnDevice = a.onDevice(t); o.Ops != nil && !r.OnDevice {
		if ceiling, err := ceilingOf(o.Host, o.Ops, a.Plan, t); err == nil {
			r.Ceiling, r.CeilingOf = ceiling.rate, ceiling.String()
			r.Above = ceiling.above(r.Rate)
		}
	}
	if err := a.Device.Lost(); err != nil {
		r.DeviceLost = err.Error()
	}
	if a.counting != nil {
		r.Counters = counters.Figures(s.counts, s.seconds, t.Tokens*t.Batch*len(s.alone))
	}
	if o.Meter != nil {
		r.setEnergy(s.energy, t.Tokens*t.Batch*len(s.alone))
	}
	if o.Neighbor != nil {
		r.Neighbor = o.Neighbor.neighbor.row(r.Rate, shareGoal(t), pus, s)
	}
	return r
}

// setEnergy sets the energy per token, or why it is not known.
func (r *Row) setEnergy(used energy.Reading, tokens int) {
	r.Energy = used
	for _, s := range used {
		if s.Err == nil && s.Joules > 0 {
			if r.BySource == nil {
				r.BySource = map[string]float64{}
			}
			r.BySource[s.Name] = s.Joules / float64(tokens)
		}
	}
	joules, err := used.Total()
	if err != nil {
		r.NoEnergy = err.Error()
		return
	}
	r.JoulesPerToken, r.JoulesOf = joules/float64(tokens), used.Summed()
}

// PlanName returns the name of a plan in rows.
func PlanName(p *plans.Plan) string {
	if p.Tuned {
		return p.Name
	}
	return "untuned"
}
