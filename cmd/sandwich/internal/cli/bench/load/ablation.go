package load

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/tuner/measure/load"
)

// ablationFlags are the flags of bench load ablation.
type ablationFlags struct {
	simFlags
	speed, static float64
	compile       time.Duration
	traffic       bool
}

func newAblation() *cobra.Command {
	var f ablationFlags
	c := &cobra.Command{
		Use:   "ablation",
		Short: "Switch off each part of the dispatch to a device, on a simulated device",
		Long: `Offer the arrivals to the engine in this process with a simulated device that runs prefill, and compare the reactive time
to first token and the proactive throughput with each part of the dispatch switched off:

  elastic split             the cores compute the last rows of reactive prompts
  disaggregation            prefill on the device and decode on the cores at the same time; without it the device runs both
  preemption                a reactive arrival halts a proactive prompt
  piggybacking              proactive work runs next to reactive decoding
  bandwidth-aware dispatch  phases of different classes that are bound by memory do not run at the same time
  background compilation    kernels for the rows of a prompt compile while it waits

The engine, its scheduler and its copies are real, the switches are the engine's, and the cores compute. The device shares
the memory of the cores. It takes the time of a device with the given speeds and computes nothing, so the tokens have no
meaning. With --traffic it reads as much memory as its kernels would, which keeps a core busy: leave one free by --threads.
Without it neither side slows the other down, and bandwidth-aware dispatch shows its cost only.

` + filesText,
		Example: `  sandwich bench load ablation --reactive 30 --proactive 120 --duration 20s
  sandwich bench load ablation --threads 1 --traffic
  sandwich bench load ablation --speed 4 --static-speed 1.3 --compile 100ms --runs 3 --format csv`,
		Args: flags.ExactArgs(0, ""),
	}
	f.add(c)
	fs := c.Flags()
	fs.Float64Var(&f.speed, "speed", 3, "arithmetic of the device, as a multiple of the cores'")
	fs.Float64Var(&f.static, "static-speed", 1.2,
		"arithmetic of kernels for a fixed number of rows, as a multiple of that of the others")
	flags.Duration(fs, &f.compile, "compile", 30*time.Millisecond, "time to compile a kernel")
	fs.BoolVar(&f.traffic, "traffic", false, "let the device read as much memory as its kernels would, on a core that "+
		"--threads leaves free")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := cmp.Or(f.check(), exit.Usage(f.checkAblation())); err != nil {
			return err
		}
		return ablationReport.After(c, *format)(f.measure(c.Context()))
	}
	return c
}

func (f *ablationFlags) checkAblation() error {
	switch {
	case !(f.speed > 0 && f.speed <= 1e6):
		return fmt.Errorf("--speed %g is out of range; give a multiple above 0, at most 1000000", f.speed)
	case !(f.static > 0 && f.static <= 1e6):
		return fmt.Errorf("--static-speed %g is out of range; give a multiple above 0, at most 1000000", f.static)
	case f.compile < 0 || f.compile > 10*time.Second:
		return fmt.Errorf("--compile %s is out of range; give a time from 0 to 10s", f.compile)
	}
	return f.checkSimulated()
}

// measure serves the arrivals without each part.
func (f *ablationFlags) measure(ctx context.Context) ([]load.AblationRow, error) {
	lanes, s, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	a := load.Ablation{Lanes: lanes, Speed: f.speed, Static: f.static, Compile: f.compile, Traffic: f.traffic}
	rows, err := a.Measure(ctx)
	for i := range rows {
		rows[i].Model, rows[i].CPU = s.Name, s.Profile.Host.CPUModel
	}
	return rows, err
}

var ablationReport = show.Report[load.AblationRow]{
	Title: func(r *load.AblationRow) string {
		return fmt.Sprintf("%s on %s, with a simulated device; times in milliseconds:", r.Model, r.CPU)
	},
	Columns: []string{"switched off", "reactive TTFT P50", "P95", "TPOT mean", "proactive tokens/s", "requests",
		"halts", "quanta", "divided", "static launches"},
	Numbers: []int{1, 2, 3, 4, 5, 6, 7, 8, 9},
	Cells: func(r *load.AblationRow) []string {
		return []string{cmp.Or(r.Without, "nothing"), millisOf(r.P50), millisOf(r.P95), millisOf(r.TPOT),
			fmt.Sprintf("%.0f", r.Proactive), strconv.Itoa(r.Reactive), strconv.FormatInt(r.Halts, 10),
			strconv.FormatInt(r.Quanta, 10), strconv.FormatInt(r.Divided, 10), strconv.FormatInt(r.Static, 10)}
	},
	Header: "switched off,\"reactive TTFT P50, s\",P95,\"reactive TPOT mean, s\",proactive tokens/s," +
		"reactive requests,halts,quanta,divided prefills,static launches",
	Line: func(r *load.AblationRow) string {
		return fmt.Sprintf("%s,%.4g,%.4g,%.4g,%.5g,%d,%d,%d,%d,%d", cmp.Or(r.Without, "nothing"), r.P50, r.P95, r.TPOT,
			r.Proactive, r.Reactive, r.Halts, r.Quanta, r.Divided, r.Static)
	},
}
