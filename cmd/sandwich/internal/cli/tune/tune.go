// Package tune has the verb tune, and the tuning of the verb run.
package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/build"
	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/datafolder"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
	"sandwich/profiles/devrates"
	"sandwich/runtime/demo"
	"sandwich/runtime/device/rates"
	"sandwich/runtime/session"
	"sandwich/tuner"
	"sandwich/tuner/finals"
	"sandwich/tuner/replay"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
	"sandwich/tuner/trials"
)

// Flags holds the flags of tune.
type Flags struct {
	Session modelflags.Flags
	profile string
	typ     string
	Out     string
	resume  bool
	forget  bool
	explain bool
	svg     string
	force   bool
	allow   string
	format  string
	Options tuner.Options
	again   *finals.Rerun // result of --rerun; nil without it

	simulation Simulation
	fleet      fleetFlags
}

const examples = `  sandwich tune --model llama.gguf
  sandwich tune --model llama-3.1-8b --type q4_0 --budget 30m -o llama.plan
  sandwich tune --model llama.gguf -o llama.plan --resume
  sandwich tune --model llama.gguf -o llama.plan --rerun 30
  sandwich tune --model llama.gguf --rerun 30 --every-set
  sandwich tune --model llama.gguf --device none
  sandwich tune --model llama.gguf --budget 1h --plans registry.example/plans --push --sign release.pem
  sandwich tune --machine kunpeng920 --model llama-3.1-8b --type f32 --simulate --format json`

// NewTune returns the verb tune.
func NewTune() *cobra.Command {
	var f Flags
	c := &cobra.Command{
		Use:   "tune",
		Short: "Search for the best plan for a model on this machine",
		Long: `Search for the best plan for a model on this machine: the PUs of each phase, and the kernel, slice and layout for each
shape, timed on the code that serves. The plan is written to -o, else to the data folder, where serve, generate and bench
find it. The default plan is measured interleaved with every candidate. It is kept in a phase unless another arm is faster
by more than the difference between two equal arms. If a plan for the same host and model at -o was measured better, it
is kept and the new plan is written next to it as PLAN.1; --force replaces it.

If the host has a device that computes exactly, such as a GPU, whole forwards also run on it (--device). The plan places
the phases on it that the device runs faster; if a host lacks the device, the cores run them with the kernels that were
the fastest there.

The model is a GGUF file, a config.json of Hugging Face, or a preset: shapes suffice for tuning. Finished trials are
journaled next to the plan; --resume continues an interrupted run. The results of kernel searches are stored in the data
folder by host and build. Another model with weights of the same shapes reuses them, and only its race runs again.
--forget removes them.

With --plans, jobs on many hosts tune each kind of host once: a job tunes nothing if the list has a good plan for its host
and model, and continues an interrupted run without --resume. --push pushes the plan under a tag of its own; 'plan index'
then lists it for 'serve --plans'.

The best of many noisy measurements is biased upward. --rerun 30 therefore races every arm again with the selected plan,
in 30 interleaved rounds that none leaves early, and reports which arms differ from it by a rank test with a correction
over all of them. With --every-set it also races the plan's kernels on every other set of its PUs, including those that
the ranking excluded.`,
		Example: examples,
		Args:    flags.ExactArgs(0, ""),
	}
	f.Session.AddModel(c)
	f.Session.AddTuneDevice(c)
	modelflags.AddVerbose(c)
	fs := c.Flags()
	fs.IntVarP(&f.Session.Threads, "threads", "t", 0, "maximum number of PUs to use (default: all allowed ones)")
	fs.StringVar(&f.profile, "profile", "", "host.yaml of this machine (default: a quick probe)")
	fs.StringVar(&f.typ, "type", "q8_0", "tensor type of the matrices of a preset, or a mix such as q4_K_M")
	fs.StringVarP(&f.Out, "output", "o", "", "plan to write, such as llama.plan (default: in the data folder)")
	fs.IntVar(&f.Options.Subject.Plan.SeqMax, "seq-max", 2048, "maximum number of rows of a prefill to tune for")
	fs.IntVar(&f.Options.Subject.Plan.BatchMax, "batch-max", 16, "maximum number of rows of a decode batch to tune for")
	flags.Duration(fs, &f.Options.Run.Budget, "budget", tuner.DefaultBudget, "total time")
	fs.StringVar(&f.Options.Search.Effort, "effort", "", "quick, standard or full (default: by the budget)")
	fs.IntVar(&f.Options.Ranking.TopK, "top-k", 10, "number of sets of active PUs to measure per phase")
	fs.StringVar(&f.Options.Search.Strategy, "strategy", "sandwich", "kernel search: "+strings.Join(search.Strategies(),
		", "))
	fs.Uint64Var(&f.Options.Run.Seed, "seed", 1, "seed of the search")
	fs.BoolVar(&f.resume, "resume", false, "continue an interrupted run with the same flags from its journal")
	fs.BoolVar(&f.explain, "explain", false, "explain how the plan was found, as plan explain does")
	fs.StringVar(&f.svg, "svg", "", "SVG file to write the machine with both phases to")
	fs.BoolVar(&f.forget, "forget", false, "remove the stored results of kernel searches, and tune nothing")
	fs.BoolVar(&f.force, "force", false,
		"replace the plan at -o even if it was measured better, is damaged, or is for another host or model")
	fs.IntVar(&f.Options.Race.Rerun, "rerun", 0,
		"number of rounds, beyond the budget, in which to race all arms again "+
			"with the plan; exit with 1 if one is significantly faster")
	fs.BoolVar(&f.Options.Race.EverySet, "every-set", false,
		"with --rerun: also race the plan's kernels on every other set of its PUs; a plan may have at most four PUs")
	fs.StringVar(&f.allow, "allow", "", "tp: accept several ranks for any gain (default: for 10 %, since they change "+
		"the rounding of logits)")
	f.simulation.add(fs)
	f.fleet.add(c)
	format := flags.Format(c, "text", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		f.format, f.Options.Run.Began = *format, time.Now()
		if f.forget {
			return forgetTrials(c)
		}
		if err := f.simulation.check(c.Flags().Changed); err != nil {
			return exit.Usage(err)
		}
		if !c.Flags().Changed("seq-max") {
			f.Options.Subject.Plan.SeqMax = 0 // the smaller of 2048 and the context of the model
		}
		return f.run(c.Context(), c.OutOrStdout())
	}
	return c
}

func (f *Flags) run(ctx context.Context, w io.Writer) error {
	if err := f.check(); err != nil {
		return exit.Usage(err)
	}
	if f.simulation.simulate {
		return f.runSimulation(ctx, w)
	}
	if err := f.fleet.open(); err != nil {
		return err
	}
	subject, err := session.OpenSubject(f.Session.Model, f.typ)
	if err != nil {
		return exit.Usage(err)
	}
	defer subject.Close()
	host, err := f.live()
	if err != nil {
		return err
	}
	named := f.Out != ""
	switch {
	case named:
	case f.fleet.finder != nil:
		f.Out, err = fleetPath(host, subject)
	default:
		f.Out, err = PlanPath(subject)
	}
	if err != nil {
		return err
	}
	if err := checkPlanPath(f.Out); err != nil {
		return exit.Usage(err)
	}
	if done, err := f.done(ctx, w, subject, host); done || err != nil {
		return err
	}
	if err := f.Settle(host, subject, named); err != nil {
		return err
	}
	if host, err = f.host(ctx, host); err != nil {
		return err
	}
	b, path, err := f.tuneOrResume(ctx, subject, host)
	if b == nil {
		return err
	}
	err = errors.Join(f.report(ctx, w, b, path), err, f.beaten(path))
	if f.fleet.push {
		err = errors.Join(err, f.pushPlan(ctx))
	}
	return err
}

func (f *Flags) check() error {
	o, plan := &f.Options, &f.Options.Subject.Plan
	switch {
	case plan.SeqMax < 0 || plan.SeqMax > 1<<20:
		return fmt.Errorf("--seq-max %d is out of range; give a number of rows from 1 to %d", plan.SeqMax, 1<<20)
	case plan.BatchMax < 1 || plan.BatchMax > modelflags.MaxParallel:
		return fmt.Errorf("--batch-max %d is out of range; give a number of rows from 1 to %d", plan.BatchMax,
			modelflags.MaxParallel)
	case o.Run.Budget < time.Second || o.Run.Budget > 100*time.Hour:
		return fmt.Errorf("--budget %s is out of range; give a time from 1s to 100h", o.Run.Budget)
	case f.allow != "" && f.allow != "tp":
		return flags.Unknown("allow", f.allow, "tp")
	case o.Ranking.TopK < 1 || o.Ranking.TopK > 1000:
		return fmt.Errorf("--top-k %d is out of range; give a number from 1 to 1000", o.Ranking.TopK)
	case !slices.Contains(search.Strategies(), o.Search.Strategy):
		return flags.Unknown("strategy", o.Search.Strategy, search.Strategies()...)
	case o.Race.Rerun != 0 && (o.Race.Rerun < finals.LeastRerun || o.Race.Rerun > 10000):
		return fmt.Errorf("--rerun %d is out of range; give a number of rounds from %d to 10000", o.Race.Rerun,
			finals.LeastRerun)
	case o.Race.EverySet && o.Race.Rerun == 0:
		return errors.New("--every-set needs --rerun; give --rerun 30 too")
	case o.Search.Effort != "":
		if _, err := search.ParseEffort(o.Search.Effort); err != nil {
			return fmt.Errorf("--effort: %w", err)
		}
	}
	return f.Session.Check()
}

// forgetTrials removes the results of kernel searches from the data folder. It rejects other flags.
func forgetTrials(c *cobra.Command) error {
	others := 0
	c.Flags().Visit(func(*pflag.Flag) { others++ })
	if others > 1 {
		return exit.Usage(errors.New("--forget cannot be combined with other flags; give it alone"))
	}
	dir, err := datafolder.Path()
	if err != nil {
		return exit.Usage(err)
	}
	n, err := trials.Forget(dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "removed %d kernel trials of earlier runs\n", n)
	return err
}

// live returns the profile of this machine, or an error if the machine does not support the flags.
func (f *Flags) live() (*profiles.Profile, error) {
	live, err := machine.Live()
	if err != nil {
		return nil, err
	}
	return live, exit.Usage(f.Session.CheckISA(live))
}

// host returns the profile to tune on: this machine, with measured ceilings.
func (f *Flags) host(ctx context.Context, live *profiles.Profile) (*profiles.Profile, error) {
	if f.profile == "" {
		return live, f.Probe(ctx, live)
	}
	p, err := profiles.Load(f.profile)
	return p, exit.Usage(err)
}

// probeShare limits the fraction of the budget for measuring the machine.
const probeShare = 1. / 3

// Probe measures this machine, in full if it has more than two PUs and the budget allows it.
func (f *Flags) Probe(ctx context.Context, live *profiles.Profile) error {
	full, words := probeWords(live.Allowed().Count(), f.Options.Run.Budget)
	if words != "" {
		show.Notice(words)
	}
	if full {
		return machine.MeasureFlag("full").Apply(ctx, live, true)
	}
	return machine.MeasureCeilings(ctx, live, calibrate.Options{Budget: min(calibrate.QuickBudget,
		f.Options.Run.Budget/10)})
}

// probeWords reports whether to measure a machine with the given number of PUs in full. words is a
// notice for the user; "" if there is nothing to choose.
func probeWords(pus int, budget time.Duration) (full bool, words string) {
	takes := calibrate.FullBudget(pus).Round(time.Second)
	const spare = "to do it once for all runs, use `sandwich probe --measure full -o host.yaml` and --profile host.yaml"
	switch {
	case pus <= 2:
		return false, ""
	case takes.Seconds() > probeShare*budget.Seconds():
		return false, fmt.Sprintf("measuring the structure of %d PUs takes about %s, too long for --budget %s; "+
			"%s",
			pus, takes, budget, spare)
	}
	return true, fmt.Sprintf("measuring the structure of %d PUs first, about %s; %s", pus, takes, spare)
}

// Tune searches, writes the plan and removes the journal. It returns the plan with an error if an
// older plan stays at -o.
func (f *Flags) Tune(ctx context.Context, subject *session.Subject, host *profiles.Profile) (*bundle.Bundle, string,
	error) {
	o := f.Options
	o.Name, o.Origin = strings.TrimSuffix(filepath.Base(f.Out), bundle.Suffix), modelOrigin(f.Session.Model)
	s, plan := &o.Subject, &o.Subject.Plan
	s.Profile, s.File, s.Config, s.Type = host, subject.File, subject.Config, subject.Type
	plan.Threads, plan.TP = f.Session.Threads, f.Session.Ranks
	plan.ISA, plan.Compute, plan.KV, plan.Attend = f.Session.ISA, f.Session.Compute, f.Session.KV, f.Session.Attention
	o.Run.Journal, o.Run.Resume, o.Run.Build = trials.JournalPath(f.Out), f.resume, build.Commit()
	if dir, err := datafolder.Path(); err == nil { // without a data folder nothing is stored
		o.Search.Wisdom = trials.WisdomPath(dir, host, build.ID())
	}
	id, dev, err := f.Session.OpenTuneDevice(ctx)
	if err != nil {
		return nil, "", err
	}
	if dev != nil {
		defer dev.Close() // its process ends with this one
		o.Race.Device = finals.Device{ID: id, Device: dev, Copies: modelflags.Copies(dev, subject)}
		described, err := machine.DeviceRates().Of(ctx, id, dev, false, rates.Usual()...)
		if err != nil { // the plan then lacks rates, which only plan show needs
			described = rates.Describe(id, build.ID(), dev.Info())
		}
		host.Devices = []devrates.Device{described}
	}
	if o.Ranking.Load, err = f.simulation.Load(o.Run.Seed); err != nil {
		return nil, "", exit.Usage(err)
	}
	o.Ranking.Objective = f.simulation.Objective
	o.Ranking.SLO = replay.SLO{TTFT: f.simulation.Ttft, TPOT: f.simulation.Tpot}
	o.Race.AllowTP = f.allow == "tp"
	line, done := show.LiveLine()
	o.Run.Progress = func(p run.Progress) {
		line(p.String())
		f.Session.Loading.At("tuning", p.Elapsed.Seconds()/p.Budget.Seconds())
	}
	o.Run.Warn = func(err error) { show.Notice(err.Error() + "; tuning continues without them") }
	o.Race.Reran = func(r *finals.Rerun) { f.again = r }
	b, err := tuner.Tune(ctx, o)
	done()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, "", fmt.Errorf("interrupted; finished trials are stored in %s; "+
			"run the same command with --resume to continue", o.Run.Journal)
	case errors.Is(err, trials.ErrJournal):
		return nil, "", exit.Usage(err)
	case err != nil:
		return nil, "", exit.Model(err)
	}
	path, kept := f.save(b, host)
	if path == "" {
		return nil, "", kept
	}
	return b, path, errors.Join(kept, trials.RemoveJournal(o.Run.Journal))
}

// modelOrigin returns the name of the model that a plan was tuned for, as the plan states it.
func modelOrigin(arg string) string {
	if arg == "" {
		return demo.Name() + " (embedded)"
	}
	return filepath.Base(arg)
}
