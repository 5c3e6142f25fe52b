package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/roofline"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/llm"
)

// opsFlags holds the flags of bench llm ops.
type opsFlags struct {
	singleFlags
	prompt []int
}

func newOps() *cobra.Command {
	var f opsFlags
	c := &cobra.Command{
		Use:   "ops",
		Short: "Measure the time of each op of a prompt",
		Long: `Measure the time of each op of a prompt. The ceiling of a product is that of the ports (see bench gemm). The column
"ports alone" has, by class of instructions, the share of the time in which these instructions alone keep their ports busy.`,
		Example: "  sandwich bench llm ops --model llama.gguf -p 512",
		Args:    flags.ExactArgs(0, ""),
	}
	f.add(c, 5)
	c.Flags().IntSliceVarP(&f.prompt, "pp", "p", []int{512}, "prompt lengths")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := cmp.Or(checkTokens("-p", f.prompt), checkReps(f.reps)); err != nil {
			return err
		}
		if slices.Max(append(f.prompt, 0)) == 0 {
			return exit.Usage(errors.New("-p selects no prompt; give a length above 0"))
		}
		return opsReport.After(c, *format)(f.run(c.Context()))
	}
	return c
}

// run measures the time of each op of the prompts.
func (f *opsFlags) run(ctx context.Context) (rows []measure.OpRow, err error) {
	s, err := f.session.Open()
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
	err = s.WithRunner(ctx, longest+1, 0, 1, func(r *forward.Runner, l *pool.Leader) error {
		step, done := show.StepBar("bench llm ops", len(lengths)*(f.reps+1))
		defer done()
		for _, n := range lengths {
			list, err := measure.Ops(ctx, r, l, isa, &ports, n, f.reps, step)
			if err != nil {
				return err
			}
			for _, row := range list {
				row.Test, row.Model, row.Plan = fmt.Sprintf("pp%d", n), s.Name, llm.PlanName(s.Plan)
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
		"ports alone"},
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

// portsText lists the classes of instructions with a share of at least 10 %, in descending order.
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
