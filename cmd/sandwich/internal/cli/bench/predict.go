package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles/calibrate"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/pool"
	"sandwich/runtime/session"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/spread"
	"sandwich/tuner/ranking"
)

// predictFlags holds the flags of bench predict.
type predictFlags struct {
	anchors  []string // files whose products are anchors; empty: the model itself
	prompts  []int
	batches  []int
	contexts []int
	threads  []int // arms with one rank; empty: one thread, and the threads of the untuned plan
	tp       []int // arms with several ranks
	reps     int
	within   time.Duration
}

func newBenchPredict() *cobra.Command {
	f := predictFlags{}
	c := &cobra.Command{
		Use:   "predict [MODEL.gguf...]",
		Short: "Predict and measure whole forwards of models, and report the errors of the predictions",
		Long: `Predict how long forwards take, as tune does before it races configurations, then measure them under untuned plans:
prompts (--prompts) and batches of sequences that generate one token each (--batches), after --contexts positions, with
--threads threads and --tp ranks. The default model is the embedded one.

Predictions use the ceilings of this machine and anchors: for each weight type three products with 1, 32 and 512 rows,
and attention, measured on the files of --anchors-of (default: the model itself) within the time of --anchors. Both are
measured again before each model, because the speed of a machine changes over minutes. The measured forwards are not
used. For a weight type that none of the files has, the prediction uses assumptions, which the report lists. The last
table has the errors of the predictions.`,
		Example: `  sandwich bench predict
  sandwich bench predict llama-160m.gguf qwen3-0.6b.gguf --anchors-of tinyllama-1.1b.gguf
  sandwich bench predict llama.gguf --threads 1,2,8 --tp 2 --batches 1,8 --contexts 128,4096 --format csv`,
	}
	fs := c.Flags()
	fs.StringSliceVar(&f.anchors, "anchors-of", nil, "GGUF files whose products are the anchors (default: the model)")
	fs.IntSliceVar(&f.prompts, "prompts", []int{16, 64, 256}, "prompt lengths in tokens; 0 measures none")
	fs.IntSliceVar(&f.batches, "batches", []int{1, 4, 16}, "batch sizes in sequences; 0 measures none")
	fs.IntSliceVar(&f.contexts, "contexts", []int{128, 1024}, "positions before the rows of each sequence")
	fs.IntSliceVarP(&f.threads, "threads", "t", nil, "worker threads of one rank (default: 1, and those of the "+
		"untuned plan)")
	fs.IntSliceVar(&f.tp, "tp", []int{2}, "numbers of tensor-parallel ranks on all threads; 1 measures none")
	fs.IntVarP(&f.reps, "reps", "r", 5, "runs of each forward")
	flags.Duration(fs, &f.within, "anchors", 10*time.Second, "time to measure the anchors of each file")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, models []string) error {
		if err := f.check(); err != nil {
			return exit.Usage(err)
		}
		if len(models) == 0 {
			models = []string{""}
		}
		out := &predictOut{}
		for _, m := range models {
			if err := f.model(c.Context(), m, out); err != nil {
				return err
			}
		}
		return out.print(c.OutOrStdout(), *format)
	}
	return c
}

func (f *predictFlags) check() error {
	for _, list := range []struct {
		flag   string
		values []int
		max    int
	}{{"prompts", f.prompts, maxRows}, {"batches", f.batches, maxRows}, {"contexts", f.contexts, 1 << 20},
		{"threads", f.threads, 1 << 12}, {"tp", f.tp, 1 << 12}} {
		minimum := 1
		if list.flag != "threads" && list.flag != "tp" {
			minimum = 0
		}
		for _, v := range list.values {
			if v < minimum || v > list.max {
				return fmt.Errorf("--%s %d is out of range; give numbers from %d to %d", list.flag, v, minimum,
					list.max)
			}
		}
	}
	switch {
	case len(f.forwards(0)) == 0:
		return errors.New("--prompts and --batches select no forward; give one of them a number above 0")
	case f.reps < 1 || f.reps > 10000:
		return fmt.Errorf("--reps %d is out of range; give a number from 1 to 10000", f.reps)
	case f.within <= 0 || f.within > 10*time.Minute:
		return fmt.Errorf("--anchors %s is out of range; give a time above 0, at most 10m", f.within)
	}
	return nil
}

// forwards returns the forwards of every arm, prompts first, that fit a context of limit positions;
// 0 means no limit.
func (f *predictFlags) forwards(limit int) (out []measure.Forward) {
	for _, prefill := range []bool{true, false} {
		rows := f.batches
		if prefill {
			rows = f.prompts
		}
		for _, context := range f.contexts {
			for _, n := range rows {
				if n > 0 && (limit == 0 || context+n <= limit) {
					out = append(out, measure.Forward{Prefill: prefill, Rows: n, Context: context})
				}
			}
		}
	}
	return out
}

// load opens a model for untuned plans.
func (f *predictFlags) load(path string) (*session.Session, error) {
	o := modelflags.Flags{Model: path, Compute: "auto", Spin: 50 * time.Microsecond}
	return o.Load()
}

// model predicts and measures the forwards of a model under every arm.
func (f *predictFlags) model(ctx context.Context, path string, out *predictOut) error {
	s, err := f.load(path)
	if err != nil {
		return err
	}
	defer s.Close()
	list := f.forwards(s.Shape.Context)
	if len(list) == 0 {
		return exit.Usage(fmt.Errorf("all --contexts exceed the context of %s, %d tokens; give smaller ones", s.Name,
			s.Shape.Context))
	}
	if err := machine.MeasureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
		return err
	}
	arms, err := f.arms(s, out)
	if err != nil {
		return err
	}
	anchors, err := f.anchorsFor(ctx, s, path)
	if err != nil {
		return err
	}
	ops, err := arch.ModelOf(s.File)
	if err != nil {
		return err
	}
	forecast, err := ranking.NewForecast(ranking.Options{Profile: s.Profile, Shape: s.Shape, Model: ops,
		Anchors: anchors})
	if err != nil {
		return exit.Usage(err)
	}
	for _, a := range anchors.Measured {
		out.assume(s.Name + ": " + a)
	}
	for _, a := range forecast.Assumed() {
		out.assume(s.Name + ": " + a)
	}
	for _, plan := range arms {
		predicted, err := forecast.Seconds(plan, list)
		if err != nil {
			return exit.Usage(err)
		}
		if err := f.measure(ctx, s, plan, list, predicted, out); err != nil {
			return err
		}
	}
	return nil
}

// arms returns untuned plans for each thread count and rank count. It omits rank counts that the
// model cannot be divided by, and reports them.
func (f *predictFlags) arms(s *session.Session, out *predictOut) (list []*plans.Plan, err error) {
	longest := slices.Max(append(slices.Clone(f.prompts), 0))
	add := func(o heuristic.Options) error {
		o.BatchMax = max(16, slices.Max(append(slices.Clone(f.batches), 0)))
		plan, err := heuristic.Default(s.Profile, s.Shape, o)
		if err != nil {
			return err
		}
		plan.Chunk = max(plan.Chunk, longest) // a forward is one chunk
		list = append(list, plan)
		return nil
	}
	if len(f.threads) == 0 {
		if err := add(heuristic.Options{Threads: 1}); err != nil {
			return nil, exit.Usage(err)
		}
		if err := add(heuristic.Options{}); err != nil {
			return nil, exit.Usage(err)
		}
		if list[1].Prefill.PUs.Count() == 1 { // both plans are equal
			list = list[:1]
		}
	}
	for _, n := range f.threads {
		if err := add(heuristic.Options{Threads: n}); err != nil {
			return nil, exit.Usage(err)
		}
	}
	for _, n := range f.tp {
		if n == 1 {
			continue
		}
		if err := add(heuristic.Options{TP: n}); err != nil {
			out.assume(fmt.Sprintf("%s: %d ranks were not measured: %v", s.Name, n, err))
		}
	}
	return list, nil
}

// anchorsFor returns the anchors of the files that hold a weight type of the model, or those of the
// model.
func (f *predictFlags) anchorsFor(ctx context.Context, s *session.Session, path string) (*ranking.Calibration, error) {
	if len(f.anchors) == 0 || slices.Equal(f.anchors, []string{path}) {
		return f.anchorsOf(ctx, s, s)
	}
	types := weightTypes(s.Shape)
	var all *ranking.Calibration
	for _, file := range f.anchors {
		of, err := f.load(file)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(weightTypes(of.Shape), func(t string) bool { return slices.Contains(types, t) }) {
			of.Close()
			continue
		}
		c, err := f.anchorsOf(ctx, of, s)
		of.Close()
		if err != nil {
			return nil, err
		}
		for i := range c.Measured {
			c.Measured[i] = filepath.Base(file) + ": " + c.Measured[i]
		}
		if all == nil {
			all = c
			continue
		}
		all.Add(c)
	}
	if all == nil {
		return nil, exit.Usage(fmt.Errorf("no file of --anchors-of has a weight type of %s; give files with %s", s.Name,
			strings.Join(types, ", ")))
	}
	return all, nil
}

// anchorsOf measures the anchors of a model under the ceilings of a session.
func (f *predictFlags) anchorsOf(ctx context.Context, of, s *session.Session) (*ranking.Calibration, error) {
	ops, err := arch.ModelOf(of.File)
	if err != nil {
		return nil, err
	}
	c, err := ranking.Anchors(ctx, ranking.Options{Profile: s.Profile, Shape: of.Shape, Model: ops}, f.within)
	return c, exit.Usage(err)
}

// weightTypes returns the types of the matrices in products.
func weightTypes(s plans.ModelShape) (out []string) {
	for _, w := range s.Weights {
		if w.Role != plans.RoleEmbed && !slices.Contains(out, w.Type) {
			out = append(out, w.Type)
		}
	}
	return out
}

// measure runs the forwards under a plan.
func (f *predictFlags) measure(ctx context.Context, s *session.Session, plan *plans.Plan, list []measure.Forward,
	predicted []float64, out *predictOut) error {
	s.Plan, s.Replan = plan, nil
	o, loaded := s.RunnerOptions(kvcache.BlocksFor(measure.ForwardPositions(list)), measure.ForwardLogits(list))
	o.Sequences = o.LogitRows
	runner, err := forward.Open(ctx, o)
	loaded()
	if err != nil {
		return exit.Model(err)
	}
	defer runner.Close()
	s.NoticeMisplaced(runner)
	step, done := show.StepBar("forwards of "+s.Name, len(list)*f.reps)
	defer done()
	var samples [][]float64
	runner.Lead(func(l *pool.Leader) { samples, err = measure.TimeForwards(ctx, runner, l, list, f.reps, step) })
	if err != nil {
		return err
	}
	for i, x := range list {
		out.rows = append(out.rows, newPredictRow(s, plan, x, predicted[i], spread.Summarize(samples[i]), f.reps))
	}
	return nil
}

// newPredictRow returns the row of a forward that was predicted and measured.
func newPredictRow(s *session.Session, plan *plans.Plan, x measure.Forward, predicted float64, sp spread.Spread,
	reps int) predictRow {
	r := predictRow{Model: s.Name, CPU: s.Profile.Host.CPUModel, TP: plan.TP(), Phase: cost.Phases[0], Rows: x.Rows,
		Context: x.Context, Predicted: predicted, Seconds: sp.Median, Min: sp.Min, Max: sp.Max, Samples: reps,
		name: x.Name(), PUs: plan.Prefill.PUs.String()}
	if !x.Prefill {
		r.Phase = cost.Phases[1]
	}
	if r.Seconds > 0 {
		r.Error = r.Predicted/r.Seconds - 1
	}
	return r
}
