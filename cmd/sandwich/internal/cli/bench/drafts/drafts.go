// Package drafts has the verb bench speculate, and the measurement of bench llm --speculate.
package drafts

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/sched"
	"sandwich/runtime/session"
	"sandwich/runtime/speculate"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/drafts"
	"sandwich/tuner/measure/llm"
)

// ParseAccept returns the probability of a value such as p=0.8.
func ParseAccept(flag, value string) (float64, error) {
	text, ok := strings.CutPrefix(value, "p=")
	p, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil || !(p >= 0 && p <= 1) {
		return 0, exit.Usage(fmt.Errorf("%s %s is not p= and a probability from 0 to 1; give one such as p=0.8", flag,
			show.Clip(value, 20)))
	}
	return p, nil
}

// Replay measures answers of n tokens to `requests` requests at once. Each drafted token is right
// with a probability.
func Replay(ctx context.Context, s *session.Session, accept float64, requests, n, reps int) (*drafts.Row, error) {
	o := drafts.Options{Accept: accept, Reps: reps, Replay: &speculate.Replay{Vocab: s.Shape.Vocab}}
	for i := range requests {
		r := drafts.Copied(measure.ClientPrompt, 0, 1, 0, s.Shape.Vocab, nil, uint64(i))
		r.Tokens = n
		o.Requests = append(o.Requests, r)
	}
	row, err := run(ctx, s, o.Replay, &o)
	if row != nil {
		row.Test = fmt.Sprintf("tg%d p=%g", n, accept)
	}
	return row, err
}

// run opens an engine with a drafter and measures the requests.
func run(ctx context.Context, s *session.Session, d speculate.Drafter, o *drafts.Options) (*drafts.Row, error) {
	o.Steps, o.Vocab = &drafts.Steps{}, s.Shape.Vocab
	o.Rows = sched.DecodeRows(len(o.Requests), s.Plan.BatchMax)
	longest := 0
	for i := range o.Requests {
		longest = max(longest, len(o.Requests[i].Prompt)+o.Requests[i].Tokens+1)
	}
	e, err := s.Engine(ctx, session.Sizes{Context: longest, Parallel: len(o.Requests), Queue: len(o.Requests),
		Speculation: drafting.Options{Drafter: d}, Observe: o.Steps.Observe})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	o.Engine = e
	var done func()
	o.Step, done = show.StepBar("bench speculate", o.Reps+2)
	defer done()
	row, err := drafts.Measure(ctx, *o)
	if err != nil {
		return nil, err
	}
	row.Model, row.Plan, row.PUs, row.CPU = s.Name, llm.PlanName(s.Plan), s.Plan.Decode.PUs.String(),
		s.Profile.Host.CPUModel
	return row, nil
}

// Report prints rows.
var Report = show.Report[drafts.Row]{
	Title: func(r *drafts.Row) string {
		return fmt.Sprintf("%s on %s, decode steps by rows:%s", r.Model, r.CPU, stepTimes(r.Times))
	},
	Columns: []string{"test", "requests", "plan", "plain, tokens/s", "with drafts", "ratio", "at least", "bound",
		"acceptance", "drafted per step"},
	Numbers: []int{1, 3, 4, 5, 6, 7, 8, 9},
	Cells: func(r *drafts.Row) []string {
		low, bound := "-", "-"
		if r.Low > 0 {
			low = fmt.Sprintf("%.3f", r.Low)
		}
		if r.Bound > 0 {
			bound = fmt.Sprintf("%.2f (%.0f %%)", r.Bound, 100*r.Ratio/r.Bound)
		}
		return []string{r.Test, fmt.Sprint(r.Requests), r.Plan, fmt.Sprintf("%.1f", r.Plain),
			fmt.Sprintf("%.1f", r.Drafted), fmt.Sprintf("%.3f", r.Ratio), low, bound,
			fmt.Sprintf("%.2f", r.Accepted), fmt.Sprintf("%.2f", r.Depth)}
	},
	Header: "test,model,requests,plan,plain_tokens_per_second,drafted_tokens_per_second,ratio,ratio_low,bound," +
		"acceptance,drafted_per_step",
	Line: func(r *drafts.Row) string {
		return fmt.Sprintf("%s,%s,%d,%s,%.2f,%.2f,%.4f,%.4f,%.4f,%.4f,%.4f", show.CSVCell(r.Test),
			show.CSVCell(r.Model), r.Requests, show.CSVCell(r.Plan), r.Plain, r.Drafted, r.Ratio, r.Low, r.Bound,
			r.Accepted, r.Depth)
	},
}

// stepTimes lists the measured times of steps relative to the first.
func stepTimes(times []float64) string {
	var out strings.Builder
	first := 0.0
	for i, t := range times {
		switch {
		case t == 0:
		case first == 0:
			first = t
			fmt.Fprintf(&out, " %d: %.2f ms", i+1, 1000*t)
		default:
			fmt.Fprintf(&out, ", %d: %.2f", i+1, t/first)
		}
	}
	return out.String()
}
