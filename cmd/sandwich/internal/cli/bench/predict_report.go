package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/num"
	"sandwich/profiles"
	"sandwich/runtime/model/cost"
)

// predictRow is one forward that was predicted and measured. Its JSON is stable.
type predictRow struct {
	Model     string  `json:"model"`
	CPU       string  `json:"cpu"`
	PUs       string  `json:"pus"`
	TP        int     `json:"tp"`
	Phase     string  `json:"phase"`
	Rows      int     `json:"rows"`    // tokens of a prompt, or sequences of a batch
	Context   int     `json:"context"` // positions before the rows of each sequence
	Predicted float64 `json:"predicted_s"`
	Seconds   float64 `json:"measured_s"` // median
	Min       float64 `json:"min_s"`
	Max       float64 `json:"max_s"`
	Samples   int     `json:"samples"`
	Error     float64 `json:"error"` // relative error of the prediction; 0.1 is 10 % too long

	name string
}

// workers describes the workers of the row.
func (r *predictRow) workers() string {
	if r.TP > 1 {
		return fmt.Sprintf("PUs %s, TP %d", r.PUs, r.TP)
	}
	return "PUs " + r.PUs
}

// predictOut holds the predicted and measured times.
type predictOut struct {
	rows        []predictRow
	assumptions []string // what the predictions assume, one sentence each
}

// assume adds a sentence to the assumptions unless they contain it.
func (o *predictOut) assume(sentence string) {
	if !slices.Contains(o.assumptions, sentence) {
		o.assumptions = append(o.assumptions, sentence)
	}
}

var predictReport = show.Report[predictRow]{
	Title:   func(r *predictRow) string { return "untuned plans on " + r.CPU },
	Columns: []string{"model", "on", "forward", "predicted", "measured", "min to max", "error"},
	Numbers: []int{3, 4, 5, 6},
	Cells: func(r *predictRow) []string {
		return []string{r.Model, r.workers(), r.name, profiles.FormatSeconds(r.Predicted),
			profiles.FormatSeconds(r.Seconds),
			profiles.FormatSeconds(r.Min) + " to " + profiles.FormatSeconds(r.Max),
			fmt.Sprintf("%+.0f %%", 100*r.Error)}
	},
	Header: "model,pus,tp,phase,rows,context,predicted_s,measured_s,min_s,max_s,samples,error",
	Line: func(r *predictRow) string {
		return fmt.Sprintf("%s,%s,%d,%s,%d,%d,%.9f,%.9f,%.9f,%.9f,%d,%.4f", show.CSVCell(r.Model),
			show.CSVCell(r.PUs), r.TP, r.Phase, r.Rows, r.Context, r.Predicted, r.Seconds, r.Min, r.Max, r.Samples,
			r.Error)
	},
}

// predictErrors holds the absolute relative errors of the predictions of some forwards.
type predictErrors struct {
	Of       string  `json:"of"`
	Forwards int     `json:"forwards"`
	Median   float64 `json:"median"`
	P90      float64 `json:"p90"`
}

// predictJSON is the stable JSON of bench predict.
type predictJSON struct {
	Rows    []predictRow    `json:"rows"`
	Errors  []predictErrors `json:"errors"` // by group of rows; the last entry covers all rows
	RestsOn []string        `json:"rests_on"`
}

// errors returns the errors for each model, each set of workers, each phase, and overall.
func (o *predictOut) errors() (out []predictErrors) {
	groups := []func(r *predictRow) string{
		func(r *predictRow) string { return r.Model },
		(*predictRow).workers,
		func(r *predictRow) string {
			if r.Phase == cost.Phases[0] {
				return "prompts"
			}
			return "generation"
		},
		func(*predictRow) string { return "all" },
	}
	for _, of := range groups {
		var names []string
		off := map[string][]float64{}
		for i := range o.rows {
			r := &o.rows[i]
			if _, known := off[of(r)]; !known {
				names = append(names, of(r))
			}
			off[of(r)] = append(off[of(r)], math.Abs(r.Error))
		}
		for _, name := range names {
			sorted := slices.Sorted(slices.Values(off[name]))
			out = append(out, predictErrors{name, len(sorted), num.Median(sorted), num.Quantile(sorted, 0.9)})
		}
	}
	return out
}

func (o *predictOut) print(w io.Writer, format string) error {
	switch format {
	case "json":
		return show.JSON(w, predictJSON{o.rows, o.errors(), append([]string{}, o.assumptions...)})
	case "csv":
		return predictReport.Print(w, o.rows, format)
	}
	if err := predictReport.Print(w, o.rows, format); err != nil {
		return err
	}
	fmt.Fprintln(w)
	var table [][]string
	for _, e := range o.errors() {
		table = append(table, []string{e.Of, strconv.Itoa(e.Forwards), fmt.Sprintf("%.0f %%", 100*e.Median),
			fmt.Sprintf("%.0f %%", 100*e.P90)})
	}
	columns := []string{"predictions of", "forwards", "median error", "90th percentile"}
	if err := show.Table(w, columns, table, 1, 2, 3); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "Predictions are based on:")
	for _, line := range o.assumptions {
		if err := show.Sentence(w, "- "+show.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}
