package llm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/roofline"
	"sandwich/runtime/engine"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure"
)

// runOps measures the time of each op of the prompts.
func (f *llmFlags) runOps(ctx context.Context) (rows []measure.OpRow, err error) {
	s, err := f.openOne()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	longest := 0
	lengths := slices.DeleteFunc(slices.Clone(f.prompt), func(n int) bool { return n == 0 })
	for _, n := range lengths {
		longest = max(longest, n)
	}
	isa := s.Plan.ISAOf("")
	figures, err := calibrate.Ports(ctx, s.Profile, isa)
	if err != nil {
		return nil, err
	}
	ports := roofline.PortsOf(figures, isa)
	err = s.WithRunner(ctx, longest+1, 0, 1, func(r *engine.Runner, l *pool.Leader) error {
		step, done := show.StepBar("bench llm --ops", len(lengths)*(f.reps+1))
		defer done()
		for _, n := range lengths {
			list, err := measure.Ops(ctx, r, l, isa, &ports, n, f.reps, step)
			if err != nil {
				return err
			}
			for _, row := range list {
				row.Test, row.Model, row.Plan = fmt.Sprintf("pp%d", n), s.Name, measure.PlanName(s.Plan)
				row.CPU = s.Profile.Host.CPUModel
				rows = append(rows, row)
			}
		}
		return nil
	})
	return rows, err
}

var opsReport = show.Report[measure.OpRow]{
	Title: func(r *measure.OpRow) string {
		return fmt.Sprintf("%s on %s, %s, float32 multiply-adds %.0f GFLOP/s", r.Model, r.CPU, r.Plan, r.Peak)
	},
	Columns: []string{"test", "op", "of them", "time", "share", "GFLOP/s", "of peak", "ceiling", "of ceiling",
		"ports by themselves"},
	Numbers: []int{2, 3, 4, 5, 6, 7, 8},
	Cells: func(r *measure.OpRow) []string {
		rate, of := "", ""
		if r.GFLOPS > 0 {
			rate = fmt.Sprintf("%.1f", r.GFLOPS)
		}
		if r.OfPeak > 0 {
			of = fmt.Sprintf("%.0f %%", 100*r.OfPeak)
		}
		ceiling, ofCeiling := "", ""
		if r.Ceiling > 0 {
			ceiling, ofCeiling = profiles.FormatSeconds(r.Ceiling), fmt.Sprintf("%.0f %%", 100*r.Ceiling/r.Seconds)
		}
		return []string{r.Test, r.Op, fmt.Sprint(r.Count), profiles.FormatSeconds(r.Seconds),
			fmt.Sprintf("%.1f %%", 100*r.Share), rate, of, ceiling, ofCeiling, portsText(r.Ports)}
	},
	Header: "test,op,model,plan,count,seconds,share,gflops,peak_gflops",
	Line: func(r *measure.OpRow) string {
		return fmt.Sprintf("%s,%s,%s,%s,%d,%.9f,%.5f,%.3f,%.3f", r.Test, r.Op, show.CSVCell(r.Model),
			show.CSVCell(r.Plan), r.Count, r.Seconds, r.Share, r.GFLOPS, r.Peak)
	},
}

// portsText lists the classes of instructions that need a tenth of the time or more, longest first.
func portsText(ports map[string]float64) string {
	var names []string
	for name, share := range ports {
		if share >= 0.1 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(ports[b], ports[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %.0f %%", name, 100*ports[name])
	}
	return strings.Join(names, ", ")
}
