package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/microkernel"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/roofline"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/session"
	"sandwich/tuner/candidates"
	"sandwich/tuner/measure"
	"sandwich/tuner/measure/chart"
)

// rooflineFlags holds the flags of bench roofline.
type rooflineFlags struct {
	session modelflags.Flags
	machine string // machine to predict for; "" measures this one
	typ     string
	each    string
	isas    []string // those of --each-isa, else that of --isa
	rows    []int
	context int
	reps    int
	min     time.Duration
	svg     string

	noSplit, noPipeline, packOnPath bool // mechanisms that a prediction for --machine leaves out
}

func newBenchRoofline() *cobra.Command {
	f := rooflineFlags{}
	c := &cobra.Command{
		Use:   "roofline",
		Short: "Predict and measure each op of a model, and report its regime and the error of the prediction",
		Long: `Print for each op of a model and each number of rows M its regime (memory-bound, ridge-crossing or compute-bound), the
workers or matrix unit that runs it, and its predicted and measured time, the median over layers and forwards. Up to the
decode batch of the plan a forward consists of M sequences that generate one token each; above, it is one chunk of a
prompt. --context positions precede the rows.

Predictions use the ceilings of this machine and four calibration forwards: batches of 2 and of three quarters of the
plan's batch, and prompts of 32 and up to 512 tokens. The largest product of each weight type gives the share of the
ceiling that kernels reach and the cost of unpacking; ops that only move rows follow a line. The calibration forwards are
interleaved with the measured ones, which are not used. The last line has the errors over ops of at least --least.

--each-isa avx512,avx2 runs the model with each of these instruction sets, interleaved, over one copy of the weights, and
reports how often the prediction names the faster one.

--machine predicts for a host.yaml or a built-in machine and measures nothing; it also reports from how many rows on an
op runs elsewhere. --no-split, --no-pipeline and --pack-on-path then report the slowdown of each op at its ceiling without
that mechanism (SMEPilot, section 5.4); for --pack-on-path the weights are written and read once more. --svg draws the
roofline with the ops. The energy of each forward, and of each of its tokens, is that of the processor packages and their
memory while it ran (RAPL); if it is not readable, the reason is printed.`,
		Example: `  sandwich bench roofline
  sandwich bench roofline --model llama.gguf --rows 1,16,512 --svg roofline.svg
  sandwich bench roofline --model llama.gguf --each-isa avx512,avx2 --format csv
  sandwich bench roofline --machine m4pro --model llama-3.2-3b --type f16 --compute f16`,
		Args: flags.ExactArgs(0, ""),
	}
	f.session.Add(c)
	fs := c.Flags()
	fs.StringVar(&f.each, "each-isa", "", "instruction sets to measure, interleaved, such as avx512,avx2")
	fs.StringVar(&f.machine, "machine", "", "host.yaml or built-in machine to predict for; nothing is measured: "+
		strings.Join(profiles.BuiltinNames(), ", "))
	fs.StringVar(&f.typ, "type", "f16", "tensor type of the matrices of a preset")
	fs.IntSliceVar(&f.rows, "rows", []int{1, 4, 16, 64, 256, 1024}, "rows of the forwards")
	fs.IntVar(&f.context, "context", 512, "positions before the rows of each sequence")
	fs.IntVarP(&f.reps, "reps", "r", 5, "forwards per number of rows")
	flags.Ignored(fs, "anchors", "anchors are interleaved with the forwards, --reps times")
	flags.Duration(fs, &f.min, "least", 50*time.Microsecond, "shortest op to show in the table and to count in the "+
		"last line")
	fs.BoolVar(&f.noSplit, "no-split", false,
		"with --machine: also predict without splitting ops between heterogeneous workers")
	fs.BoolVar(&f.noPipeline, "no-pipeline", false, "with --machine: also predict with the stages of attention in "+
		"sequence")
	fs.BoolVar(&f.packOnPath, "pack-on-path", false, "with --machine: also predict with weights packed at each use")
	fs.StringVar(&f.svg, "svg", "", "SVG file to write the roofline with the ops to")
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return exit.Usage(err)
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

// maxRows bounds the rows of a forward.
const maxRows = 1 << 14

func (f *rooflineFlags) check() error {
	slices.Sort(f.rows)
	f.rows = slices.Compact(f.rows)
	for _, m := range f.rows {
		if m < 1 || m > maxRows {
			return fmt.Errorf("--rows %d is out of range; give numbers from 1 to %d", m, maxRows)
		}
	}
	switch {
	case len(f.rows) == 0:
		return errors.New("--rows is empty; give numbers of rows, such as 1,16,512")
	case f.context < 0 || f.context > 1<<20:
		return fmt.Errorf("--context %d is out of range; give a number of positions from 0 to %d", f.context, 1<<20)
	case f.reps < 1 || f.reps > 10000:
		return fmt.Errorf("--reps %d is out of range; give a number from 1 to 10000", f.reps)
	case f.machine == "" && (f.noSplit || f.noPipeline || f.packOnPath):
		return errors.New("--no-split, --no-pipeline and --pack-on-path need --machine")
	case f.noSplit && f.noPipeline || f.noSplit && f.packOnPath || f.noPipeline && f.packOnPath:
		return errors.New("--no-split, --no-pipeline and --pack-on-path exclude each other; give one of them")
	}
	if f.each == "" {
		f.isas = []string{f.session.ISA}
		return nil
	}
	if f.session.ISA != "" || f.machine != "" {
		return errors.New("--each-isa cannot be combined with --isa or --machine")
	}
	f.isas = strings.Split(f.each, ",")
	for i, isa := range f.isas {
		if f.isas[i] = strings.TrimSpace(isa); f.isas[i] == "" || slices.Contains(f.isas[:i], f.isas[i]) {
			return fmt.Errorf("--each-isa %s has an empty or repeated name; give each instruction set once, such as "+
				"avx512,avx2", show.Clip(f.each,
				40))
		}
		if _, err := microkernel.ParseISA(f.isas[i]); err != nil {
			return fmt.Errorf("--each-isa: %w", err)
		}
	}
	return nil
}

func (f *rooflineFlags) run(ctx context.Context) (*rooflineOut, error) {
	out := &rooflineOut{min: f.min.Seconds()}
	if f.machine != "" {
		return out, f.predict(out)
	}
	arms := make([]rooflineArm, len(f.isas))
	defer func() {
		for i := range slices.Backward(arms) { // the first one owns shared weights
			arms[i].close()
		}
	}()
	for i, isa := range f.isas {
		f.session.ISA = isa
		if err := f.ready(ctx, &arms[i], out); err != nil {
			return nil, err
		}
	}
	for i := range arms {
		said, err := arms[i].load(ctx, arms[:i])
		if err != nil {
			return nil, err
		}
		out.assume(said)
	}
	return out, f.measure(ctx, arms, out)
}

// rooflineArm is one instruction set with the model loaded for it.
type rooflineArm struct {
	session *session.Session
	runner  *forward.Runner
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

// load opens the model. If both arms compute the weights in the same way, it shares the weights
// of the first arm, since a second copy of the embeddings would be slower to read. Otherwise it
// returns a sentence that says why the arm has a separate copy.
func (a *rooflineArm) load(ctx context.Context, before []rooflineArm) (said string, err error) {
	o := &a.options
	ro, loaded := a.session.RunnerOptions(kvcache.BlocksFor(o.Positions()), o.LogitRows())
	ro.Sequences = o.LogitRows()
	if len(before) > 0 {
		first := &before[0]
		if exec.SharesWeights(first.session.Plan, a.session.Plan) {
			ro.SharedWith = first.runner
		} else {
			said = fmt.Sprintf("%s computes weights differently from %s and reads a separate copy of them",
				a.session.Plan.Widest(), first.session.Plan.Widest())
		}
	}
	a.runner, err = forward.Open(ctx, ro)
	loaded()
	if err != nil {
		return "", exit.Model(err)
	}
	a.session.NoticeMisplaced(a.runner)
	o.Placer.Model = a.runner.Model
	return said, nil
}

// ready measures the figures that predictions on this machine need.
func (f *rooflineFlags) ready(ctx context.Context, a *rooflineArm, out *rooflineOut) error {
	s, err := f.session.Open()
	if err != nil {
		return err
	}
	a.session = s
	if err := machine.MeasureCeilings(ctx, s.Profile, calibrate.Options{}); err != nil {
		return err
	}
	plan := *s.Plan
	s.Plan = &plan
	ops, err := arch.ModelOf(s.File)
	if err != nil {
		return err
	}
	// The probe measures the widest instruction set only.
	profile, assumed := candidates.Complete(s.Profile, s.Plan.Widest(), s.Plan.Arithmetics())
	out.assume(assumed...)
	a.options = measure.RooflineOptions{Rows: f.rows, Reps: f.reps, Assumed: candidates.AssumedNear(),
		Placer: cost.Placer{Model: ops, Plan: s.Plan, Machine: roofline.NewMachine(profile), Context: f.context}}
	plan.Chunk = max(plan.Chunk, a.options.Longest()) // a forward is one chunk
	o := &a.options
	if _, err := o.Predict(); err != nil {
		return exit.Usage(err) // before anything is loaded
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
	rows, assumptions, energy, err := measure.Roofline(ctx, measured)
	if err != nil {
		return err
	}
	out.assumptions = slices.Concat(assumptions, out.assumptions)
	out.energy = energy
	for i := range arms {
		s := arms[i].session
		for _, r := range rows[i] {
			r.Model, r.CPU = s.Name, s.Profile.Host.CPUModel
			out.rows = append(out.rows, r)
		}
	}
	return nil
}

// predict predicts for the machine of --machine.
func (f *rooflineFlags) predict(out *rooflineOut) error {
	subject, err := session.OpenSubject(f.session.Model, f.typ)
	if err != nil {
		return exit.Usage(err)
	}
	defer subject.Close()
	host, err := machine.Named(f.machine)
	if err != nil {
		return err
	}
	ops, err := subject.Ops()
	if err != nil {
		return exit.Usage(err)
	}
	ceilings := f.session.Compute // arithmetic of all products, also if no kernel has it
	if ceilings == "auto" {
		ceilings = ""
	}
	plan, err := heuristic.Default(host, subject.Shape, heuristic.Options{KV: f.session.KV, ISA: f.session.ISA,
		Threads: f.session.Threads})
	if err != nil {
		return exit.Usage(err)
	}
	types := plan.Arithmetics()
	if ceilings != "" && !slices.Contains(types, ceilings) {
		types = append(types, ceilings)
	}
	profile, notes := candidates.Complete(host, plan.Widest(), types)
	o := measure.RooflineOptions{Rows: f.rows, Assumed: candidates.AssumedNear(), Placer: cost.Placer{Model: ops,
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
		return exit.Usage(err)
	}
	if err := f.changed(out.rows); err != nil {
		return exit.Usage(err)
	}
	if out.switches, err = o.Placer.Ranges(cost.Phases[0], f.rows[len(f.rows)-1]); err != nil {
		return exit.Usage(err)
	}
	for i := range out.rows {
		out.rows[i].Model, out.rows[i].CPU = subject.Name, host.Host.CPUModel
	}
	out.ceilings, out.assumptions = ceilingsOf(&o), append(notes, candidates.Assumptions(nil)...)
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
		return fmt.Errorf("--no-split changes nothing: no op is split between heterogeneous workers on %s", f.machine)
	case f.noPipeline:
		return fmt.Errorf("--no-pipeline changes nothing: no attention with these rows has stages on different "+
			"units on %s", f.machine)
	case f.packOnPath:
		return errors.New("--pack-on-path changes nothing: none of these ops reads weights from memory")
	}
	return nil
}

// ceilingsOf returns the ceilings of products and attention.
func ceilingsOf(o *measure.RooflineOptions) (out []chart.Ceiling) {
	p := &o.Placer
	set := p.Plan.Prefill.PUs
	types := p.Plan.Arithmetics()
	if p.Compute != "" {
		types = []string{p.Compute}
	}
	for _, typ := range types {
		r, err := p.Machine.Ceiling(set, roofline.Path{ISA: p.Plan.Widest(), Type: typ})
		if err != nil {
			continue // no op has this ceiling
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
