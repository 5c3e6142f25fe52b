package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/profiles/retention"
	"sandwich/runtime/session"
	"sandwich/tuner"
	"sandwich/tuner/replay"
)

// simulateFlags holds the flags that set the objective of the ranking and the machine.
type simulateFlags struct {
	machine   string
	simulate  bool
	trace     string
	requests  int
	rate      float64
	objective string
	ttft      time.Duration
	tpot      time.Duration
}

func (s *simulateFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&s.simulate, "simulate", false, "rank all service configurations by simulation and race none")
	fs.StringVar(&s.machine, "machine", "", "with --simulate: host.yaml of any machine, or a built-in one: "+
		strings.Join(profiles.BuiltinNames(), ", "))
	fs.StringVar(&s.trace, "trace", replay.Usual, "requests to rank by: a file (JSON lines or CSV: at, class, prompt, "+
		"output) or one of "+strings.Join(replay.Workloads(), ", "))
	fs.IntVar(&s.requests, "requests", 90, "requests of a built-in trace")
	fs.Float64Var(&s.rate, "rate", 0, "requests a second of a built-in trace, as a Poisson process (default: for "+
		"latency one after the other, else 0.7 of what all PUs can serve)")
	fs.StringVar(&s.objective, "objective", replay.Latency, strings.Join(replay.Objectives(), ", "))
	durationFlag(fs, &s.ttft, "slo-ttft", replay.DefaultSLO.TTFT, "time to the first token that a request may wait")
	durationFlag(fs, &s.tpot, "slo-tpot", replay.DefaultSLO.TPOT, "time for each token after that")
}

// check rejects flags that conflict.
func (s *simulateFlags) check(changed func(string) bool) error {
	if !s.simulate {
		if changed("machine") {
			return errors.New("--machine goes with --simulate: a race runs on this machine alone")
		}
		return s.checkLoad()
	}
	for _, name := range []string{"output", "resume", "force", "budget", "effort", "strategy"} {
		if changed(name) {
			return fmt.Errorf("--%s is for a race, and --simulate runs none: leave one of them out", name)
		}
	}
	switch {
	case s.machine == "" && changed("machine"):
		return errors.New("--machine names nothing: leave it out for this machine")
	case s.machine != "" && changed("profile"):
		return errors.New("give either --machine or --profile")
	}
	return s.checkLoad()
}

// checkLoad rejects a load that no request can follow.
func (s *simulateFlags) checkLoad() error {
	switch {
	case s.requests < 1 || s.requests > 100000:
		return fmt.Errorf("--requests %d: give a number from 1 to 100000", s.requests)
	case !(s.rate >= 0 && s.rate <= 1e6):
		return fmt.Errorf("--rate %g: give requests a second, up to a million", s.rate)
	case !slices.Contains(replay.Objectives(), s.objective):
		return fmt.Errorf("--objective: unknown objective %q; choose one of %s", s.objective,
			strings.Join(replay.Objectives(), ", "))
	case s.ttft <= 0 || s.tpot <= 0:
		return errors.New("--slo-ttft and --slo-tpot: give times above 0, such as 2s and 100ms")
	}
	return nil
}

// load reads or generates the requests. Without flags that specify requests, as under run, it
// returns the defaults of the tuner.
func (s *simulateFlags) load(seed uint64) (tuner.Load, error) {
	if s.trace == "" {
		return tuner.Load{Seed: seed}, nil
	}
	l := tuner.Load{Requests: s.requests, Rate: s.rate, Seed: seed,
		Sequential: s.rate == 0 && s.objective == replay.Latency}
	if _, err := os.Stat(s.trace); err != nil {
		l.Workload, err = replay.Named(s.trace)
		return l, err
	}
	f, err := retention.OpenRegular(s.trace)
	if err != nil {
		return l, err
	}
	defer f.Close()
	if l.Trace, err = replay.Read(f); err != nil {
		return l, fmt.Errorf("--trace %s: %w", s.trace, err)
	}
	l.Name, l.Sequential = s.trace, false
	return l, nil
}

// simulated returns the machine to rank for: the named one, else that of --profile, else this one,
// which it measures.
func (f *tuneFlags) simulated(ctx context.Context) (*profiles.Profile, error) {
	name := f.simulation.machine
	if name == "" {
		live, err := f.live()
		if err != nil {
			return nil, err
		}
		return f.host(ctx, live)
	}
	return namedMachine(name)
}

// namedMachine returns a host.yaml or a built-in machine.
func namedMachine(name string) (*profiles.Profile, error) {
	if st, err := os.Stat(name); err == nil && !st.IsDir() {
		p, err := profiles.Load(name)
		return p, usageError(err)
	}
	p, err := profiles.Builtin(name)
	if err != nil {
		err = fmt.Errorf("--machine %s: there is no such file, and %w", name, err)
	}
	return p, usageError(err)
}

// anchorsWithin limits the time to measure which share of the ceilings kernels reach.
const anchorsWithin = 10 * time.Second

// runSimulation ranks and prints.
func (f *tuneFlags) runSimulation(ctx context.Context, w io.Writer) error {
	subject, err := session.OpenSubject(f.session.model, f.typ)
	if err != nil {
		return usageError(err)
	}
	defer subject.Close()
	load, err := f.simulation.load(f.options.Seed)
	if err != nil {
		return usageError(err)
	}
	host, err := f.simulated(ctx)
	if err != nil {
		return err
	}
	if f.session.isa != "" {
		if err := f.session.checkISA(host); err != nil {
			return usageError(err)
		}
	}
	ops, err := subject.Ops()
	if err != nil {
		return usageError(err)
	}
	o := tuner.SimulateOptions{Profile: host, Shape: subject.Shape, Model: ops,
		Compute: f.session.compute, KV: f.session.kv, ISA: f.session.isa,
		TP: f.session.ranks, Threads: f.session.threads, Load: load,
		Objective: f.simulation.objective, SLO: replay.SLO{TTFT: f.simulation.ttft, TPOT: f.simulation.tpot},
		TopK: f.options.TopK}
	if f.simulation.machine == "" && f.profile == "" { // this machine, assumed to be idle
		if o.Anchors, err = tuner.Anchors(ctx, o, anchorsWithin); err != nil {
			return err
		}
	}
	update, done := show.FractionBar("ranking")
	o.Progress = func(n, of int) { update(float64(n), float64(of), fmt.Sprintf("%d of %d replays", n, of)) }
	r, err := tuner.Simulate(ctx, o)
	done()
	if err != nil {
		return usageError(err)
	}
	if f.format == "json" {
		return show.JSON(w, newRankingJSON(r, host))
	}
	return printRanking(w, r)
}
