package llm

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/llm"
)

func newSwitch() *cobra.Command {
	var f singleFlags
	c := &cobra.Command{
		Use:   "switch",
		Short: "Measure the hot switch between the workers of prefill and decode",
		Long: `Measure the hot switch in both directions: decode on some of the PUs (one per rank, unless the plan has a choice), then
prefill on all of them, whose other workers were parked for 100 ms. The output has the number of bytes of weights, KV cache
and activations that changed their address or node.`,
		Example: "  sandwich bench llm switch --model llama.gguf --threads 2 --reps 50",
		Args:    flags.ExactArgs(0, ""),
	}
	f.add(c, 5)
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkReps(f.reps); err != nil {
			return err
		}
		return switchReport.After(c, *format)(f.runSwitch(c.Context()))
	}
	return c
}

// runSwitch measures the hot switch in both directions.
func (f *singleFlags) runSwitch(ctx context.Context) (rows []measure.SwitchRow, err error) {
	s, err := f.session.Open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.Plan, err = measure.FewerForDecode(s.Plan); errors.Is(err, measure.ErrNoFewer) {
		return nil, exit.Usage(fmt.Errorf("a hot switch %w; give more --threads than --tp, or a plan with such PUs",
			err))
	}
	if err != nil {
		return nil, exit.Usage(err)
	}
	err = s.WithRunner(ctx, measure.SwitchPositions, 0, 1, func(r *forward.Runner, l *pool.Leader) (err error) {
		step, done := show.StepBar("bench llm switch", f.reps+1)
		defer done()
		rows, err = measure.Switch(ctx, r, l, s.Plan, f.reps, step)
		return err
	})
	for i := range rows {
		rows[i].Model, rows[i].Plan, rows[i].CPU = s.Name, llm.PlanName(s.Plan), s.Profile.Host.CPUModel
	}
	return rows, err
}

var switchReport = show.Report[measure.SwitchRow]{
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
