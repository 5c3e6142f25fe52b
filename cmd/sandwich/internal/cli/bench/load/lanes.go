package load

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/engine"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/load"
)

// simFlags are the flags of a simulated device.
type simFlags struct {
	loadFlags
	bandwidth float64
	launch    time.Duration
	copyRate  float64 // GB/s
	runs      int
}

func (f *simFlags) add(c *cobra.Command) {
	f.addEngine(c)
	f.addArrivals(c.Flags())
	f.addFiles(c.Flags())
	fs := c.Flags()
	fs.Float64Var(&f.bandwidth, "bandwidth", 1, "rate at which the device reads weights, as a multiple of the cores'")
	flags.Duration(fs, &f.launch, "launch", 20*time.Microsecond, "time to start a submission on the device")
	fs.Float64Var(&f.copyRate, "copy", 10, "rate of copies between device and cores in GB/s")
	fs.IntVarP(&f.runs, "runs", "r", 1, "runs of each arrangement")
}

// laneFlags are the flags of bench load lanes.
type laneFlags struct {
	simFlags
	speeds []float64
}

func newLanes() *cobra.Command {
	var f laneFlags
	c := &cobra.Command{
		Use:   "lanes",
		Short: "Compare one lane for both phases with a lane for each, on a simulated device",
		Long: `Offer the arrivals to the engine in this process with a simulated device, and compare the reactive time to first
token and the proactive throughput:

  cores          both phases on the cores, one after the other; this run also measures the speed of the cores
  shared         both phases on the device, one after the other
  disaggregated  prefill on the device and decode on the cores, at the same time
  divided        the same, but the cores compute the last rows of reactive prompts while the device computes the first

The engine, its scheduler and its copies are real, and the cores compute. The device takes the time of a device with the
given speeds and computes nothing, so the tokens have no meaning. The plan has float32 attention unless --attention says
otherwise, as devices compute no other.

` + filesText,
		Example: `  sandwich bench load lanes --reactive 30 --proactive 120 --duration 20s
  sandwich bench load lanes --speeds 1,3,20 --bandwidth 1 --launch 50us --copy 10 --format csv`,
		Args: flags.ExactArgs(0, ""),
	}
	f.add(c)
	c.Flags().Float64SliceVar(&f.speeds, "speeds", []float64{1, 3, 20},
		"arithmetic of the device, as multiples of the cores'")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := cmp.Or(f.check(), exit.Usage(f.checkLanes())); err != nil {
			return err
		}
		return laneReport.After(c, *format)(f.measure(c.Context()))
	}
	return c
}

func (f *laneFlags) checkLanes() error {
	for _, s := range f.speeds {
		if !(s > 0 && s <= 1e6) {
			return fmt.Errorf("--speeds %g is out of range; give multiples above 0, at most 1000000", s)
		}
	}
	if len(f.speeds) == 0 {
		return fmt.Errorf("--speeds is empty; give at least one multiple, such as 3")
	}
	return f.checkSimulated()
}

func (f *simFlags) checkSimulated() error {
	switch {
	case len(f.policies) != 1:
		return fmt.Errorf("--policy %s: give one policy", show.Clip(strings.Join(f.policies, ","), 40))
	case !(f.bandwidth > 0 && f.bandwidth <= 1e6):
		return fmt.Errorf("--bandwidth %g is out of range; give a multiple above 0, at most 1000000", f.bandwidth)
	case f.launch < 0 || f.launch > time.Second:
		return fmt.Errorf("--launch %s is out of range; give a time from 0 to 1s", f.launch)
	case !(f.copyRate > 0 && f.copyRate <= 1e6):
		return fmt.Errorf("--copy %g is out of range; give GB/s above 0, at most 1000000", f.copyRate)
	case f.runs < 1 || f.runs > 100:
		return fmt.Errorf("--runs %d is out of range; give a number from 1 to 100", f.runs)
	}
	return nil
}

// measure serves the arrivals under each arrangement.
func (f *laneFlags) measure(ctx context.Context) ([]load.LaneRow, error) {
	lanes, s, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	lanes.Speeds = f.speeds
	rows, err := lanes.Measure(ctx)
	for i := range rows {
		rows[i].Model, rows[i].CPU = s.Name, s.Profile.Host.CPUModel
	}
	return rows, err
}

// open opens the model, which the caller closes.
func (f *simFlags) open(ctx context.Context) (lanes load.Lanes, s *session.Session, err error) {
	if f.session.Attention == "" || f.session.Attention == "auto" {
		f.session.Attention = "f32"
	}
	t, err := f.recorded(ctx)
	if err != nil {
		return lanes, nil, err
	}
	if s, err = f.session.Open(); err != nil {
		return lanes, nil, err
	}
	f.sizes.Context, f.sizes.Policy = s.ContextLimit(f.sizes.Context), f.policies[0]
	lanes = load.Lanes{Trace: f.fit(t), Seed: f.seed, Bandwidth: f.bandwidth, Launch: f.launch,
		Copy: f.copyRate * 1e9, Runs: f.runs, Note: show.Notice,
		Open: func(on engine.DeviceOptions, change func(*engine.Service)) (*load.Engine, func(), error) {
			sizes := f.sizes
			if change != nil {
				change(&sizes.Service)
			}
			s.Accelerator = on
			target, closed, err := engineTarget(ctx, s, sizes)
			s.Accelerator = engine.DeviceOptions{} // the caller closes the device
			return target, closed, err
		}}
	return lanes, s, nil
}

var laneReport = show.Report[load.LaneRow]{
	Title: func(r *load.LaneRow) string {
		return fmt.Sprintf("%s on %s, with a simulated device of each speed; times in milliseconds:", r.Model, r.CPU)
	},
	Columns: []string{"device speed", "lanes", "reactive TTFT mean", "P50", "P90", "P99", "TPOT mean",
		"proactive tokens/s", "requests", "halts"},
	Numbers: []int{0, 2, 3, 4, 5, 6, 7, 8, 9},
	Cells: func(r *load.LaneRow) []string {
		return []string{speedOf(r), r.Lanes, millisOf(r.TTFT.Mean), millisOf(r.TTFT.P50), millisOf(r.TTFT.P90),
			millisOf(r.TTFT.P99), millisOf(r.TPOT.Mean), fmt.Sprintf("%.0f", r.Proactive), strconv.Itoa(r.Reactive),
			strconv.FormatInt(r.Halts, 10)}
	},
	Header: "device speed,lanes,\"reactive TTFT mean, s\",P50,P90,P99,\"reactive TPOT mean, s\",proactive tokens/s," +
		"reactive requests,halts",
	Line: func(r *load.LaneRow) string {
		return fmt.Sprintf("%s,%s,%.4g,%.4g,%.4g,%.4g,%.4g,%.5g,%d,%d", speedOf(r), r.Lanes, r.TTFT.Mean, r.TTFT.P50,
			r.TTFT.P90, r.TTFT.P99, r.TPOT.Mean, r.Proactive, r.Reactive, r.Halts)
	},
}

// speedOf returns the speed of the device of a row, or a dash for the cores alone.
func speedOf(r *load.LaneRow) string {
	if r.Speed == 0 {
		return "-"
	}
	return strconv.FormatFloat(r.Speed, 'g', -1, 64)
}
