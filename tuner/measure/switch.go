package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandwich/plans"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/pool"
	"sandwich/topotree"
	"sandwich/tuner/measure/spread"
)

const (
	switchParked = 100 * time.Millisecond // how long the PUs that only prefill uses are parked before they are needed
	switchPrompt = 32                     // tokens of the prefill between two decode phases
)

// SwitchPositions is the number of KV positions that a runner needs for Switch.
const SwitchPositions = 2 * kvcache.BlockTokens

// SwitchRow is one direction of the hot switch. Its JSON is stable.
type SwitchRow struct {
	Test     string    `json:"test"`     // switch down: prefill to decode; switch up: decode to prefill, after 100 ms
	Median   float64   `json:"median_s"` // from the end of the last op to the start of the next on all workers
	P10      float64   `json:"p10_s"`
	P90      float64   `json:"p90_s"`
	Samples  []float64 `json:"samples"`
	Switches uint64    `json:"switches"`    // in both directions, including warm-up
	Moved    int64     `json:"moved_bytes"` // weights, KV cache and activations that changed their address or node
	Prefill  string    `json:"prefill_pus"`
	Decode   string    `json:"decode_pus"`
	Model    string    `json:"model"`
	Plan     string    `json:"plan"`
	Goal     float64   `json:"goal_s"`
	CPU      string    `json:"cpu"`
}

// switchGoals are the goals of the medians: 10 microseconds down, 100 up.
var switchGoals = [2]float64{10e-6, 100e-6}

// ErrNoFewer is returned for a plan that parks no PUs in decode.
var ErrNoFewer = errors.New("needs more PUs for prefill than for decode")

// FewerForDecode returns the plan with decode on a part of the PUs of prefill: unchanged if it
// already is, otherwise on the first PU of each rank. The error may be ErrNoFewer.
func FewerForDecode(plan *plans.Plan) (*plans.Plan, error) {
	if !plan.Prefill.PUs.Equal(plan.Decode.PUs) {
		return plan, nil
	}
	p := *plan
	var fewer topotree.CPUSet
	for _, r := range p.Ranks {
		fewer = fewer.Union(topotree.NewCPUSet(r.PUs.First()))
	}
	if fewer.Count() == p.Prefill.PUs.Count() {
		return nil, ErrNoFewer
	}
	s, err := plans.NewService(p.Ranks, p.Prefill.PUs, fewer)
	if err != nil {
		return nil, err
	}
	p.Use(s)
	return &p, nil
}

// Switch measures the hot switch in both directions, reps times each. step is called after each of
// reps+1 samples. The caller sets the names of model, plan and CPU. `sandwich bench llm --switch`
// prints the rows.
func Switch(ctx context.Context, r *forward.Runner, l *pool.Leader, plan *plans.Plan, reps int,
	step func()) ([]SwitchRow, error) {
	b := switchBench{runner: r, leader: l}
	if err := b.run(ctx, reps, step); err != nil {
		return nil, err
	}
	var rows []SwitchRow
	for i, test := range []string{"switch down", "switch up"} {
		sp := spread.Summarize(b.samples[i])
		rows = append(rows, SwitchRow{Test: test, Median: sp.Median, P10: sp.P10, P90: sp.P90, Samples: b.samples[i],
			Switches: b.switches, Moved: b.moved, Prefill: plan.Prefill.PUs.String(), Decode: plan.Decode.PUs.String(),
			Goal: switchGoals[i]})
	}
	return rows, nil
}

// switchBench alternates a prefill and 100 ms of decode.
type switchBench struct {
	samples  [2][]float64 // seconds: down, up
	switches uint64
	moved    int64

	runner *forward.Runner
	leader *pool.Leader
	ended  time.Time // end of the last forward
}

func (b *switchBench) run(ctx context.Context, reps int, step func()) error {
	cache := b.runner.NewCache()
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
	if _, err := b.forward(&prefill); err != nil {
		return err
	}
	for rep := range reps + 1 {
		down, err := b.forward(&decode)
		if err != nil {
			return err
		}
		step() // not within a pause, which it would lengthen by a tenth
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
		if rep > 0 { // the first sample warms up
			b.samples[0] = append(b.samples[0], down.Seconds())
			b.samples[1] = append(b.samples[1], up.Seconds())
		}
	}
	b.switches = b.runner.Pool().Stats().Switches
	places, err := b.runner.Placement()
	for _, p := range places {
		b.moved += p.Moved
	}
	return err
}

// forward runs a forward and returns the pause before it: from the end of the last op of the
// previous forward to the start of this one's first op on its last worker.
func (b *switchBench) forward(batch *kvcache.Batch) (pause time.Duration, err error) {
	last := b.ended
	if _, err = b.runner.Forward(b.leader, batch, 0, nil); err != nil {
		return 0, err
	}
	began, ended := b.runner.Span()
	b.ended = ended
	return began.Sub(last), nil
}
