package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/profiles"
	"sandwich/runtime/model/cost"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/chart"
)

// rooflineOut holds the results of bench roofline.
type rooflineOut struct {
	rows        []measure.RooflineRow
	ceilings    []chart.Ceiling
	energy      measure.Energy
	assumptions []string // what the predictions are based on, one sentence each
	min         float64  // shortest op that is shown, in seconds

	switches []cost.Placed // with --machine: where ops run, by rows
}

// assume adds the assumptions of the predictions to the notes, each sentence once.
func (o *rooflineOut) assume(sentences ...string) {
	for _, s := range sentences {
		if s != "" && !slices.Contains(o.assumptions, s) {
			o.assumptions = append(o.assumptions, s)
		}
	}
}

var rooflineReport = show.Report[measure.RooflineRow]{
	Title: func(r *measure.RooflineRow) string {
		return fmt.Sprintf("%s on %s, PUs %s, %d positions before the rows", r.Model, r.CPU, r.PUs, r.Context)
	},
	Columns: []string{"M", "op", "regime", "runs on", "FLOP/B", "predicted", "measured", "error"},
	Numbers: []int{0, 4, 5, 6, 7},
	Cells: func(r *measure.RooflineRow) []string {
		intensity, took, off := "", "", ""
		if r.Intensity > 0 {
			intensity = fmt.Sprintf("%.3g", r.Intensity)
		}
		if r.Seconds > 0 {
			took, off = profiles.FormatSeconds(r.Seconds), fmt.Sprintf("%+.0f %%", 100*r.Error)
		}
		target := r.Target
		if r.Split != "" {
			target += ": " + r.Split
		}
		return []string{strconv.Itoa(r.M), r.Op, r.Regime, target, intensity, profiles.FormatSeconds(r.Predicted), took,
			off}
	},
	Header: "op,M,phase,context,count,isa,pus,type,compute,flop,bytes,regime,target,split,ceiling_s,predicted_s,without_s,measured_s," +
		"min_s,max_s,samples,error",
	Line: func(r *measure.RooflineRow) string {
		return fmt.Sprintf("%s,%d,%s,%d,%d,%s,%s,%s,%s,%.0f,%.0f,%s,%s,%s,%.9f,%.9f,%.9f,%.9f,%.9f,%.9f,%d,%.4f", r.Op,
			r.M,
			r.Phase, r.Context, r.Count, r.ISA, show.CSVCell(r.PUs), r.Type, r.Compute, r.FLOP, r.Bytes, r.Regime,
			show.CSVCell(r.Target), show.CSVCell(r.Split), r.Ceiling, r.Predicted, r.Without, r.Seconds, r.Min, r.Max,
			r.Samples, r.Error)
	},
}

// rooflineJSON is the stable JSON of bench roofline.
type rooflineJSON struct {
	Rows    []measure.RooflineRow   `json:"rows"`
	Errors  *measure.RooflineErrors `json:"errors,omitempty"`             // absent if nothing was measured
	Placed  []cost.Placed           `json:"placed,omitempty"`             // with --machine: by rows
	Joules  map[int]float64         `json:"joules_per_forward,omitempty"` // by rows
	Token   map[int]float64         `json:"joules_per_token,omitempty"`   // by rows
	Sources string                  `json:"joules_of,omitempty"`
	Missing string                  `json:"energy_not_readable,omitempty"` // why there are no joules
	RestsOn []string                `json:"rests_on"`
}

func (o *rooflineOut) print(w io.Writer, format string) error {
	off := measure.ErrorsOf(o.rows, o.min)
	if format == "json" {
		doc := rooflineJSON{Rows: o.rows, Joules: o.energy.Joules, Sources: o.energy.Sources, Placed: o.switches,
			RestsOn: append([]string{}, o.assumptions...)}
		for m, joules := range o.energy.Joules {
			if doc.Token == nil {
				doc.Token = map[int]float64{}
			}
			doc.Token[m] = joules / float64(m)
		}
		if o.energy.Missing != nil {
			doc.Missing = o.energy.Missing.Error()
		}
		if off.Ops > 0 {
			doc.Errors = &off
		}
		return show.JSON(w, doc)
	}
	if format == "csv" {
		return rooflineReport.Print(w, o.rows, format)
	}
	if err := o.table(w); err != nil {
		return err
	}
	if len(o.switches) > 0 {
		if err := planreport.PlacedReport.Print(w, o.switches, "table"); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, line := range o.sentences(off) {
		if err := show.Sentence(w, line); err != nil {
			return err
		}
	}
	return nil
}

// table prints the ops of at least o.min seconds and the number of shorter ones.
func (o *rooflineOut) table(w io.Writer) error {
	var shown []measure.RooflineRow
	short := 0
	for _, r := range o.rows {
		if max(r.Predicted, r.Seconds) < o.min {
			short++
			continue
		}
		shown = append(shown, r)
	}
	report := rooflineReport
	if len(o.rows) > 0 && o.rows[0].Seconds == 0 {
		report.Columns, report.Numbers = append(slices.Clone(report.Columns[:6]), "without it"), []int{0, 4, 5, 6}
		report.Cells = func(r *measure.RooflineRow) []string {
			cells, times := rooflineReport.Cells(r), ""
			if r.Without > 0 {
				times = fmt.Sprintf("%.2f times", r.Without/r.Ceiling)
			}
			return append(cells[:6:6], times)
		}
		if !slices.ContainsFunc(shown, func(r measure.RooflineRow) bool { return r.Without > 0 }) {
			report.Columns, report.Numbers = report.Columns[:6], []int{0, 4, 5}
			report.Cells = func(r *measure.RooflineRow) []string { return rooflineReport.Cells(r)[:6] }
		}
	}
	if err := report.Print(w, shown, "table"); err != nil {
		return err
	}
	if short > 0 {
		fmt.Fprintf(w, "not shown: %s of less than %s\n", message.Plural(short, "op"), profiles.FormatSeconds(o.min))
	}
	fmt.Fprintln(w)
	return nil
}

// sentences returns the lines below the table.
func (o *rooflineOut) sentences(e measure.RooflineErrors) (out []string) {
	if e.Ops > 0 {
		out = append(out, fmt.Sprintf("The median error of the predictions over %d ops of at least %s is %.0f %%, "+
			"the 90th percentile %.0f %%.", e.Ops, profiles.FormatSeconds(e.Least), 100*e.Median, 100*e.P90))
	}
	if e.Cases > 0 {
		out = append(out, fmt.Sprintf("The prediction names the faster instruction set in %d of %d cases that differ "+
			"by more than 10 %%.", e.Right, e.Cases))
	}
	for _, m := range slices.Sorted(maps.Keys(o.energy.Joules)) {
		joules := o.energy.Joules[m]
		out = append(out, fmt.Sprintf("A forward of M = %d took %.3g J, %.3g J per token (%s).", m, joules,
			joules/float64(m), o.energy.Sources))
	}
	if o.energy.Missing != nil {
		out = append(out, "Energy: not readable: "+show.Printable(o.energy.Missing.Error())+".")
	}
	if e.Ops == 0 {
		out = append(out, "Nothing was measured.")
	}
	out = append(out, "Predictions are based on:")
	for _, r := range o.assumptions {
		out = append(out, "- "+show.Printable(r))
	}
	return out
}
