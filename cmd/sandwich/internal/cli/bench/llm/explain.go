package llm

import (
	"context"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/planreport"
	"sandwich/profiles/calibrate"
	"sandwich/roofline"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/cost"
)

// explainFlags holds the flags of bench llm explain.
type explainFlags struct {
	testFlags
	session modelflags.Flags
	ceiling bool
}

func newExplain() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain",
		Short: "Print where each op of the tests runs, and why",
		Long: `Print for each op of the tests its regime, the workers or matrix unit that runs it, and the reason, by the ceilings of
this machine. The tests are those of bench llm; none is run.`,
		Example: "  sandwich bench llm explain --model llama.gguf -p 512 -n 64",
		Args:    flags.ExactArgs(0, ""),
	}
	f.session.Add(c)
	f.testFlags.add(c.Flags())
	machine.CeilingFlag(c.Flags(), &f.ceiling)
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		return planreport.PlacedReport.After(c, *format)(f.run(c.Context()))
	}
	return c
}

// run returns where the ops of the tests run, with reasons. It runs none of them.
func (f *explainFlags) run(ctx context.Context) (out []cost.Placed, err error) {
	s, err := f.session.Open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if f.ceiling {
		if err := machine.MeasureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
			return nil, err
		}
	}
	ops, err := arch.ModelOf(s.File)
	if err != nil {
		return nil, err
	}
	p := cost.Placer{Model: ops, Plan: s.Plan, Machine: roofline.NewMachine(s.Profile)}
	for _, t := range f.tests() {
		phase, rows := cost.Phases[1], t.Batch
		p.Context = t.Middle()
		if t.Prefill {
			phase, rows, p.Context = cost.Phases[0], min(t.Tokens, s.Plan.Chunk), t.Depth
		}
		list, err := p.At(phase, rows)
		if err != nil {
			return nil, exit.Usage(err)
		}
		out = append(out, cost.Join(list)...)
	}
	return out, nil
}
