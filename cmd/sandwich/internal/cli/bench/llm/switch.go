package llm

import (
	"context"
	"errors"
	"fmt"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/runtime/engine"
	"sandwich/runtime/pool"
	"sandwich/runtime/session"
	"sandwich/tuner/measure"
)

// openOne opens the session of a measurement that has one number of threads.
func (f *llmFlags) openOne() (*session.Session, error) {
	if len(f.threads) == 1 {
		f.session.Threads = f.threads[0]
	}
	return f.session.Open()
}

// runSwitch measures the hot switch in both directions.
func (f *llmFlags) runSwitch(ctx context.Context) (rows []measure.SwitchRow, err error) {
	s, err := f.openOne()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.Plan, err = measure.FewerForDecode(s.Plan); errors.Is(err, measure.ErrNoFewer) {
		return nil, exit.Usage(fmt.Errorf("--switch %w: give --threads more than --tp, or a plan that has them", err))
	}
	if err != nil {
		return nil, exit.Usage(err)
	}
	err = s.WithRunner(ctx, measure.SwitchPositions, 0, 1, func(r *engine.Runner, l *pool.Leader) (err error) {
		step, done := show.StepBar("bench llm --switch", f.reps+1)
		defer done()
		rows, err = measure.Switch(ctx, r, l, s.Plan, f.reps, step)
		return err
	})
	for i := range rows {
		rows[i].Model, rows[i].Plan, rows[i].CPU = s.Name, measure.PlanName(s.Plan), s.Profile.Host.CPUModel
	}
	return rows, err
}

var SwitchReport = show.Report[measure.SwitchRow]{
	Title: func(r *measure.SwitchRow) string { return r.Model + " on " + r.CPU },
	Columns: []string{"test", "plan", "prefill PUs", "decode PUs", "median", "p10", "p90", "goal", "samples",
		"bytes moved"},
	Numbers: []int{4, 5, 6, 7, 8, 9},
	Cells: func(r *measure.SwitchRow) []string {
		return []string{r.Test, r.Plan, r.Prefill, r.Decode, profiles.FormatSeconds(r.Median),
			profiles.FormatSeconds(r.P10),
			profiles.FormatSeconds(r.P90), profiles.FormatSeconds(r.Goal),
			fmt.Sprint(len(r.Samples)), fmt.Sprint(r.Moved)}
	},
	Header: "test,model,plan,prefill_pus,decode_pus,median_s,p10_s,p90_s,reps,switches,moved_bytes",
	Line: func(r *measure.SwitchRow) string {
		return fmt.Sprintf("%s,%s,%s,%s,%s,%.9f,%.9f,%.9f,%d,%d,%d", r.Test, show.CSVCell(r.Model),
			show.CSVCell(r.Plan),
			show.CSVCell(r.Prefill), show.CSVCell(r.Decode),
			r.Median, r.P10, r.P90, len(r.Samples), r.Switches, r.Moved)
	},
}
