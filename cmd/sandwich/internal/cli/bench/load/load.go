package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/client"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/sched"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

// loadFlags holds the flags of bench load.
type loadFlags struct {
	session  modelflags.Flags
	sizes    modelflags.Service
	url      string
	key      string
	policies []string
	rates    [2]float64 // a minute, by class
	sets     [2]string
	during   time.Duration
	seed     uint64
	seeds    int
	slo      replay.SLO
	goodput  int
	simulate bool
	sweep    string
	record   string
	replay   string
	svg      string
	goals    []string
	machine  string   // whose devices are simulated
	lanes    []string // of it
	typ      string

	swept []load.SweepRow // of all policies
}

func New() *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use:   "load",
		Short: "Offer requests of two classes and measure what each class sees",
		Long: `Offer reactive and proactive requests as they come by chance, or as they were recorded, and measure the time to the
first token (TTFT), the time per token (TPOT) and the latency by class, of the engine in this process, under one policy
after another, or of any server with OpenAI's /v1/completions (--url).

` + setsText() + `
Times are printed in milliseconds, in JSON and CSV in seconds.

--record writes the arrivals, --replay offers them again at the same times, whatever --reactive, --proactive, their sets
and --duration say. A file of arrivals is JSON lines, "at" in seconds since the start and lengths in tokens, of which
prompts are made anew by --seed:
  {"at": 1.5, "class": "reactive", "prompt": 120, "output": 64}

--simulate offers the arrivals to the engine in real time, which is measured, then runs them through the same scheduler
on a virtual clock, where nothing is computed and a forward takes what its ops took in the run before, times the
machine's pace in that second of the run (another process that takes the CPUs for seconds fills every queue), and prints both:
where they agree a simulated objective is worth something. --sweep then goes through multiples of the arrivals' rate, or
of the service level, on the virtual clock alone.

--machine and --lanes simulate the arrivals on devices of a machine that need not be here: prefills on one and decode
batches on the other, side by side, each op at the ceiling of its device.

--goal measures what two classes are to see, with its bound, in runs of its own:
  open      all at once to fcfs, then at 0.9 of that rate: the reactive ones alone, all under each policy and fcfs
  backlog   the reactive ones alone, then, under each policy or on a server, behind a proactive backlog that never ends
  quanta    a reactive request that decodes while proactive prompts of 2048 tokens (or --ctx) wait
  halt      from a reactive arrival to its first op while such a prompt is read, young and aged`,
		Example: `  sandwich bench load --reactive 12 --proactive 24 --duration 2m --svg load.svg
  sandwich bench load --policy sandwich,fcfs,preempt,share --record arrivals.jsonl
  sandwich bench load --replay arrivals.jsonl --simulate --policy sandwich,fcfs   # measured, simulated, the difference
  sandwich bench load --replay arrivals.jsonl --simulate --format json            # "clock": "wall", "virtual"
  sandwich bench load --simulate --sweep rate --svg sweep.svg
  sandwich bench load --url http://127.0.0.1:8080 --reactive 6 --proactive 12
  sandwich bench load --goodput 6 --slo-ttft 1s --slo-tpot 100ms
  sandwich bench load --goal open,backlog --policy sandwich,preempt,share --reactive 40 --proactive 80 --duration 30s
  sandwich bench load --goal open,backlog --seeds 3 --reactive 20 --proactive 40     # the spread over three seeds
  sandwich bench load --goal quanta,halt --ctx 2560 --duration 20s
  sandwich bench load --machine core-ultra-125h --model llama-3.2-3b --lanes gpu --lanes npu,gpu --policy fcfs,sandwich`,
		Args: flags.ExactArgs(0, ""),
	}
	f.session.Add(c)
	fs := c.Flags()
	fs.StringVar(&f.url, "url", "", "server to measure instead of the engine in this process")
	fs.StringVar(&f.key, "api-key", "", "key that the server asks for")
	fs.StringSliceVar(&f.policies, "policy", []string{sched.DefaultPolicy}, "policies, one after another: "+
		strings.Join(sched.Policies(), ", "))
	f.sizes.AddShares(fs)
	fs.IntVar(&f.sizes.Parallel, "parallel", 8, "requests that run at the same time")
	fs.IntVar(&f.sizes.Context, "ctx", 1024, "most tokens of a request, to which lengths are cut")
	fs.IntVar(&f.sizes.Queue, "queue", 1024, "requests of each class that may wait")
	f.addArrivals(fs)
	flags.Duration(fs, &f.slo.TTFT, "slo-ttft", 2*time.Second, "service level: time to the first token at most")
	flags.Duration(fs, &f.slo.TPOT, "slo-tpot", 200*time.Millisecond, "service level: time per token at most")
	fs.IntVar(&f.goodput, "goodput", 0, "runs of a bisection for the highest rate at which 90 % of the reactive "+
		"requests meet the service level")
	fs.BoolVar(&f.simulate, "simulate", false, "simulate the same arrivals and print both clocks")
	fs.StringVar(&f.sweep, "sweep", "", "with --simulate: go through multiples of the "+
		strings.Join(load.Sweeps(), " or of the "))
	fs.StringVar(&f.record, "record", "", "file to write the arrivals to")
	fs.StringVar(&f.replay, "replay", "", "file of recorded arrivals to offer instead")
	fs.StringVar(&f.svg, "svg", "", "file for a picture of the last run, or of the sweep")
	fs.StringSliceVar(&f.goals, "goal", nil, "measure goals and print their bounds: "+strings.Join(load.Goals(), ", "))
	f.addDevices(fs)
	format := flags.Format(c, "table", "json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return exit.Usage(err)
		}
		return f.run(c.Context(), c.OutOrStdout(), *format)
	}
	return c
}

// addArrivals adds the flags that specify the arrivals.
func (f *loadFlags) addArrivals(fs *pflag.FlagSet) {
	fs.Float64Var(&f.rates[sched.Reactive], "reactive", 3, "reactive requests a minute")
	fs.Float64Var(&f.rates[sched.Proactive], "proactive", 6, "proactive requests a minute")
	fs.StringVar(&f.sets[sched.Reactive], "reactive-set", "mixed", "lengths of reactive requests")
	fs.StringVar(&f.sets[sched.Proactive], "proactive-set", "mixed", "lengths of proactive requests")
	flags.Duration(fs, &f.during, "duration", time.Minute, "how long requests come")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of arrivals, lengths and prompts")
	fs.IntVar(&f.seeds, "seeds", 1, "with --goal: so many runs, with this and the following seeds, and their spread")
}

// setsText lists the built-in sets with their properties.
func setsText() string {
	var b strings.Builder
	b.WriteString("Lengths are named after the sets of Agent.xpu section 6.1; only these statistics are known here:\n")
	for _, class := range []sched.Class{sched.Reactive, sched.Proactive} {
		list, _ := replay.SetsOf("mixed", class)
		for _, s := range list {
			fmt.Fprintf(&b, "  %-15s %-10s %s\n", s.Name, class, s.Source)
		}
	}
	return b.String()
}

func (f *loadFlags) check() error {
	for _, p := range f.policies {
		f.sizes.Policy = p
		if err := f.sizes.CheckService(); err != nil {
			return err
		}
	}
	s := &f.sizes
	switch {
	case len(f.policies) == 0:
		return errors.New("--policy: name at least one")
	case s.Parallel < 1 || s.Parallel > modelflags.MaxParallel:
		return fmt.Errorf("--parallel %d: give a number from 1 to %d", s.Parallel, modelflags.MaxParallel)
	case s.Context < 2 || s.Context > modelflags.MaxContext:
		return fmt.Errorf("--ctx %d: give a number of tokens from 2 to %d", s.Context, modelflags.MaxContext)
	case s.Queue < 0 || s.Queue > 1<<20:
		return fmt.Errorf("--queue %d: give a number from 0 to %d", s.Queue, 1<<20)
	case f.during <= 0 || f.during > 24*time.Hour || f.slo.TTFT <= 0 || f.slo.TPOT <= 0:
		return errors.New("--duration, --slo-ttft and --slo-tpot need a duration above 0, and a day at most")
	case f.goodput < 0 || f.goodput > 20:
		return fmt.Errorf("--goodput %d: give a number of runs up to 20", f.goodput)
	case f.url != "" && f.simulate:
		return errors.New("--simulate needs the op times of the engine in this process: leave --url out")
	case f.sweep != "" && !f.simulate:
		return errors.New("--sweep runs on the virtual clock: give --simulate too")
	case f.sweep != "" && !slices.Contains(load.Sweeps(), f.sweep):
		return fmt.Errorf("--sweep %.40q: choose one of %s", f.sweep, strings.Join(load.Sweeps(), ", "))
	case f.url != "" && len(f.policies) > 1:
		return errors.New("--policy chooses among those of the engine in this process: leave it or --url out")
	case f.goodput > 0 && f.replay != "":
		return errors.New("--goodput varies the rate, which recorded arrivals fix: leave --replay out")
	}
	if err := cmp.Or(f.checkDevices(), f.checkGoals()); err != nil {
		return err
	}
	for _, r := range f.rates {
		if !(r >= 0 && r <= 1e5) {
			return fmt.Errorf("a rate of %g: give a number of requests a minute up to 100000", r)
		}
	}
	u, err := url.Parse(f.url)
	if f.url != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--url %s: give one such as http://127.0.0.1:8080", show.Clip(f.url, 60))
	}
	return nil
}

// arrivals returns the arrivals that the flags specify, with their rates multiplied by scale.
func (f *loadFlags) arrivals(scale float64) (replay.Trace, error) {
	if f.replay != "" {
		in, err := openInput(f.replay)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		t, err := replay.Read(in)
		if err != nil {
			return nil, fmt.Errorf("--replay %s: %w", f.replay, err)
		}
		return f.fit(t), nil
	}
	var of []replay.Arrivals
	for class, rate := range f.rates {
		list, err := replay.SetsOf(f.sets[class], sched.Class(class))
		if err != nil {
			return nil, err
		}
		of = append(of, replay.Arrivals{Class: sched.Class(class), Rate: rate * scale, Sets: list})
	}
	t := replay.Poisson(f.during, f.seed, f.sizes.Context, of...)
	if len(t) == 0 {
		return nil, errors.New("no request comes in this time: raise --reactive, --proactive or --duration")
	}
	return t, nil
}

func (f *loadFlags) run(ctx context.Context, out io.Writer, format string) error {
	t, err := f.arrivals(1)
	if err != nil {
		return exit.Usage(err)
	}
	if f.record != "" {
		if err := outfile.Write(ctx, f.record, t.Write); err != nil {
			return err
		}
	}
	if len(f.goals) > 0 {
		return f.measureGoals(ctx, out, format, t)
	}
	if f.machine != "" {
		runs, err := f.devices(f.fit(t))
		if err != nil {
			return err
		}
		return printLoad(out, format, runs, f.slo)
	}
	runs, err := f.measure(ctx, t)
	if err != nil {
		return err
	}
	if f.sweep != "" {
		if f.svg != "" {
			err := outfile.Write(ctx, f.svg, func(w io.Writer) error { return load.SweepSVG(w, f.swept) })
			if err != nil {
				return err
			}
		}
		return printSweep(out, format, runs, f.swept, f.slo)
	}
	if f.svg != "" {
		last := runs[len(runs)-1]
		if last.Simulated {
			last = runs[len(runs)-2]
		}
		if err := outfile.Write(ctx, f.svg, last.Timeline); err != nil {
			return err
		}
	}
	return printLoad(out, format, runs, f.slo)
}

// measure offers the arrivals under each policy, or to the server.
func (f *loadFlags) measure(ctx context.Context, t replay.Trace) (runs []*load.Run, err error) {
	if f.url != "" {
		target := f.server()
		run, err := load.Offer(ctx, t, f.seed, target)
		if err != nil {
			return nil, err
		}
		run.Policy = f.url
		if f.goodput > 0 {
			run.Goodput, err = f.bisect(ctx, target)
		}
		return []*load.Run{run}, err
	}
	s, err := f.session.Open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f.sizes.Context = min(f.sizes.Context, s.ContextLimit(f.sizes.Context))
	t = f.fit(t)
	for _, policy := range slices.Compact(f.policies) {
		f.sizes.Policy = policy
		list, err := f.measurePolicy(ctx, s, t)
		if err != nil {
			return nil, err
		}
		runs = append(runs, list...)
	}
	return runs, nil
}

// fit cuts requests to the context and prints how many it cut.
func (f *loadFlags) fit(t replay.Trace) replay.Trace {
	fit, longer := t.Within(f.sizes.Context), 0
	for i := range t {
		if fit[i] != t[i] {
			longer++
		}
	}
	if longer > 0 {
		show.Notice(fmt.Sprintf("%d of %d requests are longer than %d tokens, prompt and answer, and are cut to them",
			longer, len(t), f.sizes.Context))
	}
	return fit
}

// measurePolicy runs the arrivals on a separate engine, and on the virtual clock.
func (f *loadFlags) measurePolicy(ctx context.Context, s *session.Session, t replay.Trace) ([]*load.Run, error) {
	sizes := f.sizes
	target, closed, err := engineTarget(ctx, s, sizes)
	if err != nil {
		return nil, err
	}
	defer closed()
	show.Notice(fmt.Sprintf("policy %s: %d requests in %s", sizes.Policy, len(t), t[len(t)-1].At.Round(time.Second)))
	run, err := load.Offer(ctx, t, f.seed, target)
	if err != nil {
		return nil, err
	}
	run.Policy, run.CPU, run.Model = sizes.Policy, s.Profile.Host.CPUModel, s.Name
	if f.goodput > 0 {
		if run.Goodput, err = f.bisect(ctx, target); err != nil {
			return nil, err
		}
	}
	runs := []*load.Run{run}
	if f.simulate {
		sim, err := target.Simulate(run, sizes.Sched(), sizes.Context)
		if err != nil {
			return nil, err
		}
		runs = append(runs, sim)
	}
	if f.sweep == "" {
		return runs, nil
	}
	rows, err := load.Sweep(f.sweep, sizes.Policy, f.slo, func(scale float64) (*replay.Report, error) {
		return target.Replay(t.Faster(scale), sizes.Sched(), sizes.Context)
	})
	f.swept = append(f.swept, rows...)
	return runs, err
}

// engineTarget returns an engine of the session with the given sizes as a target of requests.
func engineTarget(ctx context.Context, s *session.Session, sizes modelflags.Service) (*load.Engine, func(), error) {
	target := &load.Engine{}
	sizes.Observe = target.Observe
	e, err := s.Engine(ctx, sizes.Sizes)
	if err != nil {
		return nil, nil, err
	}
	target.Serve(e)
	return target, e.Close, nil
}

// server returns a client of the server at --url.
func (f *loadFlags) server() *client.Server {
	return &client.Server{URL: strings.TrimSuffix(f.url, "/"), Key: f.key}
}

// bisect finds the largest factor of the arrival rate at which 90 % of the reactive requests meet
// the service level. It returns the rate of all requests per minute, or 0 if even a tenth of the
// rate fails.
func (f *loadFlags) bisect(ctx context.Context, target load.Target) (float64, error) {
	lo, hi, met := 0.1, 10.0, 0.0
	for range f.goodput {
		mid := (lo * hi) / max(lo, (lo+hi)/2) // the harmonic mean, which favors the lower rates
		t, err := f.arrivals(mid)
		if err != nil {
			return 0, err
		}
		run, err := load.Offer(ctx, t, f.seed, target)
		if err != nil {
			return 0, err
		}
		if run.Report.Of(sched.Reactive).Attainment(f.slo) >= 0.9 {
			lo, met = mid, mid
		} else {
			hi = mid
		}
	}
	return met * (f.rates[0] + f.rates[1]), nil
}
