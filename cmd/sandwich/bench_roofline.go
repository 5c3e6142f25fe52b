package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/roofline"
	"sandwich/runtime/engine"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/session"
	"sandwich/topotree"
	"sandwich/tuner/candidates"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/chart"
)

// rooflineFlags holds the flags of bench roofline.
type rooflineFlags struct {
	session sessionFlags
	machine string // predicted alone
	typ     string
	each    string
	isas    []string // of each; that of --isa without it
	rows    []int
	context int
	reps    int
	least   time.Duration
	svg     string

	noSplit, noPipeline, packOnPath bool // what --machine predicts without
}

func newBenchRoofline() *cobra.Command {
	f := rooflineFlags{}
	c := &cobra.Command{
		Use:   "roofline",
		Short: "Predict and measure each op of a model: its regime, its time, and how far the prediction is off",
		Long: `Print for each op of a model and each number of rows M what bounds it (memory-bound, ridge-crossing or
compute-bound), where it runs, how long it is predicted to take and how long it took, as the median over layers and
forwards. Up to the plan's decode batch a forward is M sequences that each generate a token, beyond it one chunk of a prompt;
--context positions lie before them.

Predictions rest on the ceilings of this machine and on four forwards that are interleaved with the measured ones, batches of 2
and of three quarters of the plan's and prompts of 32 and up to 512 tokens: the largest product of each weight type says what
kernels reach of the ceilings with it and what unpacking costs, and what only moves rows goes by a line. None of the measured
forwards enters. The last line says how far they are off over ops of at least --least.

--each-isa avx512,avx2 runs the model under each of these instruction sets, over one copy of it, one forward at a time,
interleaved, and says how often the faster one was predicted to be.
--machine predicts for any host.yaml or a built-in machine, and measures nothing; it also says from how many rows on an op
runs elsewhere. --no-split, --no-pipeline and --pack-on-path then say how many times as long each op would take at its ceiling
without that mechanism (SMEPilot, section 5.4): its weights written and read once more, for the last. --svg draws the roofline with the ops
on it. The energy of each forward is printed where the system has counters for it.`,
		Example: `  sandwich bench roofline
  sandwich bench roofline --model llama.gguf --rows 1,16,512 --svg roofline.svg
  sandwich bench roofline --model llama.gguf --each-isa avx512,avx2 --format csv
  sandwich bench roofline --machine m4pro --model llama-3.2-3b --type f16 --compute f16`,
		Args: exactArgs(0, ""),
	}
	f.session.add(c)
	fs := c.Flags()
	fs.StringVar(&f.each, "each-isa", "", "measure these instruction sets, interleaved, such as avx512,avx2")
	fs.StringVar(&f.machine, "machine", "", "predict for this host.yaml or built-in machine and measure nothing: "+
		strings.Join(profiles.BuiltinNames(), ", "))
	fs.StringVar(&f.typ, "type", "f16", "tensor type of the matrices, where the model is a preset")
	fs.IntSliceVar(&f.rows, "rows", []int{1, 4, 16, 64, 256, 1024}, "rows of the forwards")
	fs.IntVar(&f.context, "context", 512, "positions before the rows of each sequence")
	fs.IntVarP(&f.reps, "reps", "r", 5, "forwards of each number of rows")
	fs.Duration("anchors", 0, "of builds that measured anchors before the forwards")
	// it is there
	_ = fs.MarkDeprecated("anchors", "anchors are interleaved with the forwards, as often as --reps says")
	durationFlag(fs, &f.least, "least", 50*time.Microsecond, "shortest op that is shown in the table and counts "+
		"in the last line")
	fs.BoolVar(&f.noSplit, "no-split", false,
		"with --machine: also without splitting ops between heterogeneous workers")
	fs.BoolVar(&f.noPipeline, "no-pipeline", false, "with --machine: also with the stages of attention one after the "+
		"other")
	fs.BoolVar(&f.packOnPath, "pack-on-path", false, "with --machine: also with weights packed at each use")
	fs.StringVar(&f.svg, "svg", "", "file for a picture of the roofline with the ops on it")
	format := formatFlag(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return usageError(err)
		}
		out, err := f.run(c.Context())
		if err != nil {
			return err
		}
		if f.svg != "" {
			if err := outfile.Write(c.Context(), f.svg, func(w io.Writer) error {
				return chart.Roofline(w, out.rows,
					out.ceilings)
			}); err != nil {
				return err
			}
		}
		return out.print(c.OutOrStdout(), *format)
	}
	return c
}

// mostRows bounds the rows of a forward.
const mostRows = 1 << 14

func (f *rooflineFlags) check() error {
	slices.Sort(f.rows)
	f.rows = slices.Compact(f.rows)
	for _, m := range f.rows {
		if m < 1 || m > mostRows {
			return fmt.Errorf("--rows %d: give numbers from 1 to %d", m, mostRows)
		}
	}
	switch {
	case len(f.rows) == 0:
		return errors.New("--rows is empty: give numbers of rows, such as 1,16,512")
	case f.context < 0 || f.context > 1<<20:
		return fmt.Errorf("--context %d: give positions from 0 to %d", f.context, 1<<20)
	case f.reps < 1 || f.reps > 10000:
		return fmt.Errorf("--reps %d: give a number from 1 to 10000", f.reps)
	case f.machine == "" && (f.noSplit || f.noPipeline || f.packOnPath):
		return errors.New("--no-split, --no-pipeline and --pack-on-path go with --machine: nothing here runs without " +
			"them")
	case f.noSplit && f.noPipeline || f.noSplit && f.packOnPath || f.noPipeline && f.packOnPath:
		return errors.New("take away one mechanism at a time: give one of --no-split, --no-pipeline, --pack-on-path")
	}
	if f.each == "" {
		f.isas = []string{f.session.isa}
		return nil
	}
	if f.session.isa != "" || f.machine != "" {
		return errors.New("--each-isa goes without --isa and --machine")
	}
	f.isas = strings.Split(f.each, ",")
	for i, isa := range f.isas {
		if f.isas[i] = strings.TrimSpace(isa); f.isas[i] == "" || slices.Contains(f.isas[:i], f.isas[i]) {
			return fmt.Errorf("--each-isa %s: give each instruction set once, such as avx512,avx2", show.Clip(f.each,
				40))
		}
	}
	return nil
}

func (f *rooflineFlags) run(ctx context.Context) (*rooflineOut, error) {
	out := &rooflineOut{least: f.least.Seconds()}
	if f.machine != "" {
		return out, f.predict(out)
	}
	arms := make([]rooflineArm, len(f.isas))
	defer func() {
		for i := range slices.Backward(arms) { // the first one lends
			arms[i].close()
		}
	}()
	for i, isa := range f.isas {
		f.session.isa = isa
		if err := f.ready(ctx, &arms[i], out); err != nil {
			return nil, err
		}
	}
	for i := range arms {
		said, err := arms[i].load(ctx, arms[:i])
		if err != nil {
			return nil, err
		}
		out.rest(said)
	}
	return out, f.measure(ctx, arms, out)
}

// rooflineArm is one instruction set with the model loaded for it.
type rooflineArm struct {
	session *session.Session
	runner  *engine.Runner
	options measure.RooflineOptions
}

func (a *rooflineArm) close() {
	if a.runner != nil {
		a.runner.Close()
	}
	if a.session != nil {
		a.session.Close()
	}
}

// load opens the model. It shares the weights of the first arm if both arms compute them alike,
// since a second copy of the embeddings is slower to read.
func (a *rooflineArm) load(ctx context.Context, before []rooflineArm) (said string, err error) {
	o := &a.options
	ro, loaded := a.session.RunnerOptions(kvcache.BlocksFor(o.Positions()), o.LogitRows())
	ro.Sequences = o.LogitRows()
	if len(before) > 0 {
		first := &before[0]
		if exec.SharesWeights(first.session.Plan, a.session.Plan) {
			ro.SharedWith = first.runner
		} else {
			said = fmt.Sprintf("%s computes weights in another way than %s, and reads a copy of its own",
				a.session.Plan.Widest(), first.session.Plan.Widest())
		}
	}
	a.runner, err = engine.Open(ctx, ro)
	loaded()
	if err != nil {
		return "", modelError(err)
	}
	a.session.NoticeMisplaced(a.runner)
	o.Placer.Model = a.runner.Model
	return said, nil
}

// ready measures the figures that predictions on this machine need.
func (f *rooflineFlags) ready(ctx context.Context, a *rooflineArm, out *rooflineOut) error {
	s, err := f.session.open()
	if err != nil {
		return err
	}
	a.session = s
	if err := measureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
		return err
	}
	plan := *s.Plan
	s.Plan = &plan
	ops, err := model.Of(s.File)
	if err != nil {
		return err
	}
	// what a narrower instruction set than the widest reaches is not probed
	profile, assumed := candidates.Complete(s.Profile, s.Plan.Widest(), s.Plan.Arithmetics())
	out.rest(assumed...)
	a.options = measure.RooflineOptions{Rows: f.rows, Reps: f.reps, Assumed: candidates.AssumedNear(),
		Placer: model.Placer{Model: ops, Plan: s.Plan, Machine: roofline.NewMachine(profile), Context: f.context}}
	plan.Chunk = max(plan.Chunk, a.options.Longest()) // a forward is one chunk
	o := &a.options
	if _, err := o.Predict(); err != nil {
		return usageError(err) // before anything is loaded
	}
	out.ceilings = append(out.ceilings, ceilingsOf(o)...)
	return nil
}

// measure runs the forwards of all arms.
func (f *rooflineFlags) measure(ctx context.Context, arms []rooflineArm, out *rooflineOut) error {
	measured := make([]measure.RooflineArm, len(arms))
	for i := range arms {
		measured[i] = measure.RooflineArm{Runner: arms[i].runner, Options: arms[i].options}
	}
	step, done := show.StepBar("bench roofline", measure.RooflineForwards(measured))
	defer done()
	for i := range measured {
		measured[i].Options.Step = step
	}
	rows, rests, energy, err := measure.Roofline(ctx, measured)
	if err != nil {
		return err
	}
	out.rests = slices.Concat(rests, out.rests)
	out.joules, out.energy = energy.Joules, energy.Missing
	for i := range arms {
		s := arms[i].session
		for _, r := range rows[i] {
			r.Model, r.CPU = s.Name, s.Profile.Host.CPUModel
			out.rows = append(out.rows, r)
		}
	}
	return nil
}

// predict predicts for a machine other than this one.
func (f *rooflineFlags) predict(out *rooflineOut) error {
	subject, err := session.OpenSubject(f.session.model, f.typ)
	if err != nil {
		return usageError(err)
	}
	defer subject.Close()
	host, err := namedMachine(f.machine)
	if err != nil {
		return err
	}
	ops, err := subject.Ops()
	if err != nil {
		return usageError(err)
	}
	ceilings := f.session.compute // of products, whatever kernels there are
	if ceilings == "auto" {
		ceilings = ""
	}
	plan, err := heuristic.Default(host, subject.Shape, heuristic.Options{KV: f.session.kv, ISA: f.session.isa,
		Threads: f.session.threads})
	if err != nil {
		return usageError(err)
	}
	types := plan.Arithmetics()
	if ceilings != "" && !slices.Contains(types, ceilings) {
		types = append(types, ceilings)
	}
	profile, notes := candidates.Complete(host, plan.Widest(), types)
	o := measure.RooflineOptions{Rows: f.rows, Assumed: candidates.AssumedNear(), Placer: model.Placer{Model: ops,
		Plan:    plan,
		Machine: roofline.NewMachine(profile), Context: f.context, Compute: ceilings}}
	if f.noSplit || f.noPipeline || f.packOnPath {
		without := o.Placer
		without.Alone, without.Sequential = f.noSplit, f.noPipeline
		if f.packOnPath {
			without.Packing = packingMoves
		}
		o.Without = &without
	}
	if out.rows, err = o.Predict(); err != nil {
		return usageError(err)
	}
	if err := f.changed(out.rows); err != nil {
		return usageError(err)
	}
	if out.switches, err = o.Placer.Ranges(model.Phases[0], f.rows[len(f.rows)-1]); err != nil {
		return usageError(err)
	}
	for i := range out.rows {
		out.rows[i].Model, out.rows[i].CPU = subject.Name, host.Host.CPUModel
	}
	out.ceilings, out.rests = ceilingsOf(&o), append(notes, candidates.Assumptions(nil)...)
	return nil
}

// packingMoves counts how often the bytes of a weight that is packed on the path move in addition
// to the first read: one write and one read. With write-allocate caches the count is 3.
const packingMoves = 2

// changed returns an error if removing the mechanism that a flag names changes no op.
func (f *rooflineFlags) changed(rows []measure.RooflineRow) error {
	for i := range rows {
		if r := &rows[i]; r.Without > r.Ceiling*(1+1e-9) {
			return nil
		}
	}
	switch {
	case f.noSplit:
		return fmt.Errorf("--no-split: on %s no op is split between unlike workers", f.machine)
	case f.noPipeline:
		return fmt.Errorf("--no-pipeline: on %s no attention of these rows has stages on unlike units", f.machine)
	case f.packOnPath:
		return errors.New("--pack-on-path: none of these ops reads weights from memory")
	}
	return nil
}

// ceilingsOf returns the ceilings that products and attention have.
func ceilingsOf(o *measure.RooflineOptions) (out []chart.Ceiling) {
	p := &o.Placer
	set := topotree.NewCPUSet(p.Plan.Prefill.PUs...)
	types := p.Plan.Arithmetics()
	if p.Compute != "" {
		types = []string{p.Compute}
	}
	for _, typ := range types {
		r, err := p.Machine.Ceiling(set, roofline.Path{ISA: p.Plan.Widest(), Type: typ})
		if err != nil {
			continue // no op stands on it
		}
		for _, t := range r.Targets {
			out = append(out, chart.Ceiling{Name: t.Name, Peak: t.Peak, Bandwidth: r.Bandwidth})
		}
		if r.Mixed > 0 {
			out = append(out, chart.Ceiling{Name: "all at once", Peak: r.Mixed, Bandwidth: r.Bandwidth})
		}
	}
	return out
}
