package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"sandwich/plans"
	"sandwich/runtime/counters"
)

// shareGoal is the part of its fair share that a test keeps beside a neighbour.
const shareGoal = 0.7

// llmSamples are the tokens per second of one test under one plan.
type llmSamples struct {
	alone, disturbed []float64
	taken            []float64 // parts of the PU's time that the neighbour took

	counts  counters.Counts // of all samples without the neighbour
	seconds float64         // they took
}

// neighbourRow is what a neighbour costs one test. Shares are of the medians.
type neighbourRow struct {
	PU        int       `json:"pu"`
	Asked     float64   `json:"asked"` // part of the PU's time
	Taken     float64   `json:"taken"` // what the neighbour got of it, median
	Rate      float64   `json:"tokens_per_second"`
	Min       float64   `json:"min"`
	Max       float64   `json:"max"`
	Samples   []float64 `json:"samples"`
	FairShare float64   `json:"fair_share_tokens_per_second"`
	Share     float64   `json:"of_fair_share"`
	Goal      float64   `json:"goal"`
}

// settling is how long the neighbour runs before a sample begins, so that the kernel knows it.
const settling = 60 * time.Millisecond

// sample measures a test once, and then once beside the neighbour where there is one. The first
// sample only warms up.
func (f *llmFlags) sample(ctx context.Context, s *session, a *llmArm, t llmTest, warming bool, to *llmSamples) error {
	before, began := a.counted(), time.Now()
	rate, err := a.measure(ctx, s, t)
	if err != nil {
		return err
	}
	if warming {
		return nil
	}
	to.count(a.counted().Sub(before), time.Since(began))
	to.alone = append(to.alone, rate)
	if f.beside == nil {
		return nil
	}
	if err := f.beside.begin(); err != nil {
		return err
	}
	time.Sleep(settling)
	if rate, err = a.measure(ctx, s, t); err != nil {
		return err
	}
	part, err := f.beside.end()
	if err != nil {
		return err
	}
	to.disturbed, to.taken = append(to.disturbed, rate), append(to.taken, part)
	return nil
}

// phasePUs are the PUs that run a test.
func (a *llmArm) phasePUs(t llmTest) plans.PUSet {
	if t.prefill {
		return a.plan.Prefill.PUs
	}
	return a.plan.Decode.PUs
}

func (r *llmRow) addNeighbour(n neighbour, pus []int, s *llmSamples) {
	sp := summarize(s.disturbed)
	fair := r.Rate * n.fairPart(pus)
	r.Neighbour = &neighbourRow{PU: n.pu, Asked: n.part, Taken: summarize(s.taken).median, Rate: sp.median,
		Min: sp.min, Max: sp.max,
		Samples: s.disturbed, FairShare: fair, Share: sp.median / fair, Goal: shareGoal}
}

func printNeighbours(w io.Writer, rows []llmRow) error {
	var table [][]string
	for _, r := range rows {
		n := r.Neighbour
		if n == nil {
			continue
		}
		verdict := "missed"
		if n.Share >= n.Goal {
			verdict = "met"
		}
		table = append(table, []string{r.label(), fmt.Sprint(r.Threads), r.Plan, fmt.Sprint(n.PU),
			fmt.Sprintf("%.0f %%", 100*n.Taken), fmt.Sprintf("%.2f", n.Rate),
			fmt.Sprintf("%.2f", n.Min), fmt.Sprintf("%.2f", n.Max), fmt.Sprintf("%.2f", n.FairShare),
			fmt.Sprintf("%.0f %%", 100*n.Share),
			fmt.Sprintf("%.0f %% (%s)", 100*n.Goal, verdict)})
	}
	if table == nil {
		return nil
	}
	fmt.Fprintln(w, "\nbeside a neighbour:")
	return printTable(w, []string{"test", "threads", "plan", "its PU", "took", "tokens/s", "min", "max", "fair share",
		"of it", "goal"}, table, 1, 3, 4, 5, 6, 7, 8, 9)
}
