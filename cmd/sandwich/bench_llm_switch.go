package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/runtime/engine"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
)

const (
	switchParked = 100 * time.Millisecond // how long the PUs of prefill alone are parked before they are needed
	switchPrompt = 32                     // tokens of the prefill between two decode phases
)

// switchRow is one direction of the hot switch; its JSON is stable.
type switchRow struct {
	Test     string    `json:"test"`     // switch down: prefill to decode; switch up: decode to prefill, after 100 ms
	Median   float64   `json:"median_s"` // from the end of the last op to the start of the next on all workers
	P10      float64   `json:"p10_s"`
	P90      float64   `json:"p90_s"`
	Samples  []float64 `json:"samples"`
	Switches uint64    `json:"switches"`    // in both directions, those that warmed up included
	Moved    int64     `json:"moved_bytes"` // of weights, KV cache and activations: to another address or node
	Prefill  string    `json:"prefill_pus"`
	Decode   string    `json:"decode_pus"`
	Model    string    `json:"model"`
	Plan     string    `json:"plan"`
	Goal     float64   `json:"goal_s"`
	CPU      string    `json:"cpu"`
}

// switchGoals are what the medians are held against: 10 microseconds down, 100 up.
var switchGoals = [2]float64{10e-6, 100e-6}

// fewerForDecode is the plan with decode on a part of the PUs of prefill: as it is where it says
// so, else on the first PU of each rank.
func fewerForDecode(plan *plans.Plan) (*plans.Plan, error) {
	if !slices.Equal(plan.Prefill.PUs, plan.Decode.PUs) {
		return plan, nil
	}
	p := *plan
	var fewer plans.PUSet
	for _, r := range p.Ranks {
		fewer = append(fewer, r.PUs[0])
	}
	slices.Sort(fewer)
	if len(fewer) == len(p.Prefill.PUs) {
		return nil, errors.New("--switch needs more PUs for prefill than for decode: give --threads more than " +
			"--tp, or a plan that has them")
	}
	s, err := plans.NewService(p.Ranks, p.Prefill.PUs, fewer)
	if err != nil {
		return nil, err
	}
	p.Use(s)
	return &p, nil
}

// runSwitch measures the hot switch in both directions.
func (f *llmFlags) runSwitch(ctx context.Context) ([]switchRow, error) {
	if len(f.threads) == 1 {
		f.session.threads = f.threads[0]
	}
	s, err := f.session.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.plan, err = fewerForDecode(s.plan); err != nil {
		return nil, usageError(err)
	}
	var b switchBench
	err = s.withRunner(ctx, 2*kvcache.BlockTokens, 1, func(r *engine.Runner, l *pool.Leader) error {
		return b.run(ctx, r, l, f.reps)
	})
	if err != nil {
		return nil, err
	}
	var rows []switchRow
	for i, test := range []string{"switch down", "switch up"} {
		sorted := slices.Sorted(slices.Values(b.samples[i]))
		rows = append(rows, switchRow{Test: test, Median: summarize(sorted).median, P10: sorted[len(sorted)/10],
			P90:     sorted[len(sorted)*9/10],
			Samples: b.samples[i], Switches: b.switches, Moved: b.moved, Prefill: s.plan.Prefill.PUs.String(),
			Decode: s.plan.Decode.PUs.String(),
			Model:  s.name, Plan: armName(s.plan), Goal: switchGoals[i], CPU: s.profile.Host.CPUModel})
	}
	return rows, nil
}

// switchBench runs a prefill and 100 ms of decode in turn.
type switchBench struct {
	samples  [2][]float64 // seconds: down, up
	switches uint64
	moved    int64

	runner *engine.Runner
	leader *pool.Leader
	ended  time.Time // of the last forward
}

func (b *switchBench) run(ctx context.Context, r *engine.Runner, l *pool.Leader, reps int) error {
	b.runner, b.leader = r, l
	cache := r.NewCache()
	seq := cache.Open(kvcache.Salt{})
	if !cache.Reserve(seq, switchPrompt+1) {
		return fmt.Errorf("%d tokens do not fit the KV cache", switchPrompt+1)
	}
	cache.Cover(seq, switchPrompt+1)
	prompt := make([]int32, switchPrompt)
	prefill := kvcache.Batch{Prefill: true, Tokens: prompt, LogitRows: []int32{switchPrompt - 1}}
	prefill.AddSpan(seq, kvcache.Span{Rows: switchPrompt})
	decode := kvcache.Batch{Tokens: []int32{0}, LogitRows: []int32{0}}
	decode.AddSpan(seq, kvcache.Span{Rows: 1, Pos: switchPrompt})
	step, done := countProgress("bench llm --switch", reps+1)
	defer done()
	if _, err := b.forward(&prefill); err != nil {
		return err
	}
	for rep := range reps + 1 {
		down, err := b.forward(&decode)
		if err != nil {
			return err
		}
		for began := b.ended; b.ended.Sub(began) < switchParked; {
			if _, err := b.forward(&decode); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		up, err := b.forward(&prefill)
		if err != nil {
			return err
		}
		if rep > 0 { // the first one warms up
			b.samples[0] = append(b.samples[0], down.Seconds())
			b.samples[1] = append(b.samples[1], up.Seconds())
		}
		step()
	}
	b.switches = r.Pool().Stats().Switches
	places, err := r.Placement()
	for _, p := range places {
		b.moved += p.Moved
	}
	return err
}

// forward returns the pause before it: from the end of the last forward's last op to the start of
// this one's first op on the last of its workers.
func (b *switchBench) forward(batch *kvcache.Batch) (pause time.Duration, err error) {
	last := b.ended
	if _, err = b.runner.Forward(b.leader, batch, 0, nil); err != nil {
		return 0, err
	}
	began, ended := b.runner.Span()
	b.ended = ended
	return began.Sub(last), nil
}

var switchReport = report[switchRow]{
	title: func(r *switchRow) string { return r.Model + " on " + r.CPU },
	columns: []string{"test", "plan", "prefill PUs", "decode PUs", "median", "p10", "p90", "goal", "samples",
		"bytes moved"},
	numbers: []int{4, 5, 6, 7, 8, 9},
	cells: func(r *switchRow) []string {
		return []string{r.Test, r.Plan, r.Prefill, r.Decode, formatSeconds(r.Median), formatSeconds(r.P10),
			formatSeconds(r.P90), formatSeconds(r.Goal),
			fmt.Sprint(len(r.Samples)), fmt.Sprint(r.Moved)}
	},
	header: "test,model,plan,prefill_pus,decode_pus,median_s,p10_s,p90_s,reps,switches,moved_bytes",
	line: func(r *switchRow) string {
		return fmt.Sprintf("%s,%s,%s,%s,%s,%.9f,%.9f,%.9f,%d,%d,%d", r.Test, csvCell(r.Model), csvCell(r.Plan),
			csvCell(r.Prefill), csvCell(r.Decode),
			r.Median, r.P10, r.P90, len(r.Samples), r.Switches, r.Moved)
	},
}
