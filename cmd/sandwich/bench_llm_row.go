package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sandwich/runtime/counters"
)

// llmRow is one line of bench llm; its JSON is stable.
type llmRow struct {
	Test    string    `json:"test"`
	Threads int       `json:"threads"`
	Batch   int       `json:"batch"`
	Rate    float64   `json:"tokens_per_second"` // median
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Samples []float64 `json:"samples"`
	Model   string    `json:"model"`
	Plan    string    `json:"plan"` // untuned, or the name of the tuned plan
	Tuned   bool      `json:"tuned"`
	TP      int       `json:"tp"`
	KV      string    `json:"kv"`
	PUs     string    `json:"pus"`
	Roof    float64   `json:"roof_tokens_per_second,omitempty"`
	RoofOf  string    `json:"roof,omitempty"`       // what the roof is made of
	Above   string    `json:"above_roof,omitempty"` // why the rate is higher than the roof, where it is
	CPU     string    `json:"cpu"`

	Counters  []counters.Figure `json:"counters,omitempty"`
	Neighbour *neighbourRow     `json:"neighbour,omitempty"`
}

func newLLMRow(s *session, a *llmArm, t llmTest, samples []float64) llmRow {
	pus := a.phasePUs(t)
	sp := summarize(samples)
	r := llmRow{Test: t.name, Threads: len(pus), Batch: t.batch, Rate: sp.median, Min: sp.min, Max: sp.max,
		Samples: samples,
		Model:   s.name, Plan: a.name, Tuned: a.plan.Tuned, TP: a.plan.TP(), KV: a.plan.KV.String(), PUs: pus.String(),
		CPU: s.profile.Host.CPUModel}
	if roof, err := s.roof(a.plan, t); err == nil {
		r.Roof, r.RoofOf = roof.rate, roof.String()
		r.Above = roof.above(r.Rate)
	}
	return r
}

var llmReport = report[llmRow]{
	title:   func(r *llmRow) string { return r.Model + " on " + r.CPU },
	columns: []string{"test", "threads", "plan", "tokens/s", "min", "max", "roof", "of roof", "roof made of"},
	numbers: []int{1, 3, 4, 5, 6, 7},
	cells: func(r *llmRow) []string {
		roof, ofRoof := "", ""
		if r.Roof > 0 {
			roof, ofRoof = fmt.Sprintf("%.1f", r.Roof), cmp.Or(r.Above, fmt.Sprintf("%.0f %%", 100*r.Rate/r.Roof))
		}
		return []string{r.label(), strconv.Itoa(r.Threads), r.Plan, fmt.Sprintf("%.2f", r.Rate), fmt.Sprintf("%.2f",
			r.Min), fmt.Sprintf("%.2f", r.Max), roof, ofRoof, r.RoofOf}
	},
	header: "model,test,threads,batch,plan,tokens_per_second,min,max,roof,samples",
	line: func(r *llmRow) string {
		var samples []string
		for _, s := range r.Samples {
			samples = append(samples, fmt.Sprintf("%.3f", s))
		}
		return fmt.Sprintf("%s,%s,%d,%d,%s,%.3f,%.3f,%.3f,%.3f,%s", csvCell(r.Model), r.Test, r.Threads, r.Batch,
			csvCell(r.Plan),
			r.Rate, r.Min, r.Max, r.Roof, strings.Join(samples, ";"))
	},
}

func printLLM(w io.Writer, rows []llmRow, format string) error {
	if len(rows) == 0 && format == "table" {
		_, err := fmt.Fprintln(w, "nothing to measure: -p and -n are both 0")
		return err
	}
	if err := llmReport.print(w, rows, format); err != nil || format != "table" {
		return err
	}
	if err := printCounters(w, rows); err != nil {
		return err
	}
	return printNeighbours(w, rows)
}

func (r *llmRow) label() string {
	if r.Batch > 1 {
		return fmt.Sprintf("%s x %d", r.Test, r.Batch)
	}
	return r.Test
}
