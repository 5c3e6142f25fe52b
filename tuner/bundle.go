package tuner

import (
	"fmt"
	"slices"
	"time"

	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/heuristic"
	"sandwich/runtime/phase"
	"sandwich/tuner/finals"
	"sandwich/tuner/partition"
	"sandwich/tuner/search"
)

// bundle returns the plan of the winners with its evidence.
func (t *tuning) bundle(out outcome) (*bundle.Bundle, error) {
	won := out.result
	if t.shape.Pooled() {
		leaveDecode(&won)
	}
	p := *won.Partition.Plan
	p.Name = t.o.Name
	if p.Name == "" {
		p.Name = planName(t.shape.Name)
	}
	prefill, decode := &won.Phases[phase.Prefill], &won.Phases[phase.Decode]
	p.Tuned = prefill.Measured || decode.Measured
	p.Prefill, p.Decode = prefill.Phase, decode.Phase
	s, err := t.service(won)
	if err != nil {
		return nil, fmt.Errorf("the tuned plan is not valid: %w", err)
	}
	p.Use(s)
	var placed []phase.Phase
	for _, ph := range won.Partition.Served() {
		if won.Phases[ph].OnDevice {
			placed = append(placed, ph)
		}
	}
	if p.Placement, err = t.place(p.Model.DeviceOps(), won.Partition, placed); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("the tuned plan is not valid: %w", err)
	}
	return &bundle.Bundle{Plan: p, Host: *t.o.Subject.Profile, Evidence: t.evidence(p.Version, out)}, nil
}

// place returns the placement of phases on the device.
func (t *tuning) place(ops string, on *partition.Partition, placed []phase.Phase) ([]plans.Placement, error) {
	d := t.o.Race.Device
	list := plans.PlaceOn(d.ID, ops, true, placed...)
	if len(list) == 0 || !d.Copies {
		return list, nil
	}
	weights, err := on.DeviceBytes()
	if err != nil {
		return nil, fmt.Errorf("the copy of the weights on device %s: %w", d.ID, err)
	}
	for i := range list {
		list[i].CopyBytes = weights
	}
	return list, nil
}

// evidence returns how the plan was found.
func (t *tuning) evidence(version int, out outcome) evidence.Evidence {
	o := t.o
	e := evidence.Evidence{Version: version, Model: o.Origin, Build: o.Run.Build,
		Created: t.run.Began.UTC().Format(time.RFC3339), Strategy: o.Search.Strategy, Effort: o.Search.Effort,
		Seed: o.Run.Seed, Budget: o.Run.Budget.Seconds(), Trials: t.run.Trials, Rejected: t.run.Rejected,
		Kernels: out.kernels, Searches: out.searches, Finalists: slices.Concat(out.samples, out.result.Samples),
		Steps: out.steps}
	if !search.PerShape(o.Search.Strategy) {
		e.EarlyStop = search.ReuseCriterion()
	}
	for _, x := range slices.Concat(out.noise, out.result.Noise) {
		e.Noise = max(e.Noise, num.Significant(x))
	}
	e.Spent, e.Trace = t.run.Elapsed().Seconds(), t.ranked.Trace()
	return e
}

// leaveDecode fills in the unused decode phase of a pooled model: the PUs of prefill with the
// schedules of the default heuristic, which may assign slices to any worker.
func leaveDecode(won *finals.Result) {
	set := won.Phases[phase.Prefill].Set
	won.Phases[phase.Decode] = finals.Winner{Set: set, Phase: plans.Phase{PUs: set.PUs,
		Tables: won.Partition.Plan.Decode.Tables}}
}

// service returns the service configuration with the winning PUs of each phase.
func (t *tuning) service(won finals.Result) (plans.ServiceConfig, error) {
	prefill, decode := won.Phases[phase.Prefill].Set.PUs, won.Phases[phase.Decode].Set.PUs
	if ranks := won.Partition.Plan.Ranks; len(ranks) > 1 {
		// the weights are divided for these ranks regardless of the active PUs
		return plans.NewService(ranks, prefill, decode)
	}
	ranks, err := heuristic.MakeRanks(t.o.Subject.Profile, prefill.Union(decode), 1)
	if err != nil {
		return plans.ServiceConfig{}, err
	}
	return plans.NewService(ranks, prefill, decode)
}

// planName returns a valid plan name for a model.
func planName(model string) string {
	var out []rune
	for _, r := range model {
		if r < ' ' || r == 0x7f || r == '/' || r == '\\' {
			r = '-'
		}
		if len(out) < 100 {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return "tuned"
	}
	return string(out)
}
