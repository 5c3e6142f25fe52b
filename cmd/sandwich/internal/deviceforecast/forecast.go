// Package deviceforecast predicts which phases of a model a device shortens, by the measured rates
// of the device and the figures of the cores.
package deviceforecast

import (
	"fmt"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/plans/selection"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/runtime/engine"
	"sandwich/runtime/model"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/runtime/placement"
	"sandwich/tuner/measure/llm"
)

// Reference is the request for which a placement is chosen, that of the tests of a plan.
var Reference = placement.Load{Requests: 1, Prompt: 512, Output: 64}

// Prediction is the predicted choice of a placement.
type Prediction struct {
	Plan          *selection.Choice // for the device
	cores, device placement.Side
	ops           string // that run on the device
	chunk         int
	Phases        []phase.Phase // that run on the device
	Alone, Best   time.Duration // of the reference request, on the cores and as chosen
	estimates     []placement.Estimate
}

// Takes returns the predicted time of the reference request if the device runs phases, nil: those
// that were chosen.
func (p *Prediction) Takes(phases []phase.Phase) time.Duration {
	for _, e := range p.estimates {
		if phases != nil && slices.Equal(e.Device, phases) {
			return e.Latency
		}
	}
	return p.Best
}

// String describes the prediction.
func (p *Prediction) String() string {
	rate := func(l placement.Line, rows int) float64 { return float64(rows) / l.Of(rows).Seconds() }
	return fmt.Sprintf("predicted prefill %.1f tokens/s on the device and %.1f on the cores, decode %.1f and %.1f; "+
		"it runs %s", rate(p.device[phase.Prefill], p.chunk), rate(p.cores[phase.Prefill], p.chunk),
		rate(p.device[phase.Decode], 1), rate(p.cores[phase.Decode], 1), OpsList(p.ops, p.Phases))
}

// checkLimit is the predicted time of the forwards of a check of the prediction up to which the
// check is made.
const checkLimit = 300 * time.Millisecond

// Cheap reports whether measuring forwards of both phases on both sides takes little time.
func (p *Prediction) Cheap() bool {
	var sum time.Duration
	for _, side := range []placement.Side{p.cores, p.device} {
		sum += side[phase.Prefill].Of(engine.MeasuredRows) + side[phase.Decode].Of(1)
	}
	return sum <= checkLimit
}

// predict chooses the phases of a device under a plan by the device's rates and the figures of
// the cores. The cores alone run onCores, whose paths may be faster.
func predict(rates *devrates.Device, host *profiles.Profile, ops *model.Model, chosen,
	onCores *selection.Choice) (*Prediction, error) {
	forecast, err := offload.NewForecast(rates, ops, chosen.Plan)
	if err != nil {
		return nil, err
	}
	var sides [2]placement.Side
	for i, c := range []*selection.Choice{chosen, onCores} {
		if sides[i], err = CoresSide(host, ops, c); err != nil {
			return nil, err
		}
	}
	load := Reference
	load.Chunk = chosen.Plan.Chunk
	r := placement.Rates{Cores: sides[0], Device: forecast.Side()}
	r.ToCores, r.ToDevice = forecast.Copies()
	onDevice := chosen.Plan.Model.DeviceOps()
	if r.Shared = onDevice == plans.DenseOps; r.Shared {
		if err := addExperts(&r.Device, sides[0], host, ops, chosen.Plan); err != nil {
			return nil, err
		}
	}
	estimates := placement.Choose(load, r)
	best := estimates[0]
	load.Chunk = onCores.Plan.Chunk
	alone := placement.Choose(load, placement.Rates{Cores: sides[1], Device: sides[1]})[0]
	p := &Prediction{Plan: chosen, cores: sides[1], device: r.Device, chunk: min(chosen.Plan.Chunk, Reference.Prompt),
		ops: onDevice, Phases: best.Device, Alone: alone.Latency, Best: best.Latency, estimates: estimates}
	if p.Alone <= p.Best { // also if the plan for the device has slower paths on the cores
		p.Phases = nil
	}
	return p, nil
}

// addExperts adds the time of the experts to the forwards on a device: the share of the forwards on
// the cores that their ceilings give.
func addExperts(device *placement.Side, cores placement.Side, host *profiles.Profile, ops *model.Model,
	p *plans.Plan) error {
	for of, test := range referenceTests() {
		share, err := llm.ExpertsShare(host, ops, p, test)
		if err != nil {
			return fmt.Errorf("rates of the cores: %w", err)
		}
		device[of] = device[of].Plus(cores[of], share)
	}
	return nil
}

// referenceTests returns the tests of the reference request by phase.
func referenceTests() []llm.Test {
	return llm.Tests([]int{Reference.Prompt}, []int{Reference.Output}, nil, 1)
}
