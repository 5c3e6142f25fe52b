package tune

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

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/machine"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
	"sandwich/profiles/retention"
	"sandwich/runtime/session"
	"sandwich/tuner/ranking"
	"sandwich/tuner/replay"
)

// Simulation holds the flags of the ranking: machine, requests and objective.
type Simulation struct {
	machine   string
	simulate  bool
	Trace     string
	Requests  int
	rate      float64
	Objective string
	Ttft      time.Duration
	Tpot      time.Duration
}

func (s *Simulation) add(fs *pflag.FlagSet) {
	fs.BoolVar(&s.simulate, "simulate", false, "rank all service configurations by simulation, without a race")
	fs.StringVar(&s.machine, "machine", "", "with --simulate: host.yaml or built-in machine to rank for: "+
		strings.Join(profiles.BuiltinNames(), ", "))
	fs.StringVar(&s.Trace, "trace", replay.Usual, "requests to rank for: a file (JSON lines or CSV: at, class, "+
		"prompt, output) or one of "+strings.Join(replay.Workloads(), ", "))
	fs.IntVar(&s.Requests, "requests", 90, "number of requests of a built-in trace")
	fs.Float64Var(&s.rate, "rate", 0, "requests per second of a built-in trace, as a Poisson process (default: for "+
		"latency one at a time, else 0.7 of the capacity of all PUs)")
	fs.StringVar(&s.Objective, "objective", replay.Latency, "objective of the ranking: "+
		""+strings.Join(replay.Objectives(), ", "))
	flags.Duration(fs, &s.Ttft, "slo-ttft", replay.DefaultSLO.TTFT, "service level: maximum time to the first token")
	flags.Duration(fs, &s.Tpot, "slo-tpot", replay.DefaultSLO.TPOT, "service level: maximum time per output token")
}

// check rejects flags that conflict.
func (s *Simulation) check(changed func(string) bool) error {
	if !s.simulate {
		if changed("machine") {
			return errors.New("--machine needs --simulate; without it tune races on this machine")
		}
		return s.CheckLoad()
	}
	for _, name := range []string{"output", "resume", "force", "budget", "effort", "strategy"} {
		if changed(name) {
			return fmt.Errorf("--%s cannot be combined with --simulate, which runs no race; leave one of them out",
				name)
		}
	}
	switch {
	case s.machine == "" && changed("machine"):
		return errors.New("--machine is empty; leave it out for this machine")
	case s.machine != "" && changed("profile"):
		return errors.New("--machine and --profile exclude each other; give one of them")
	}
	return s.CheckLoad()
}

// CheckLoad rejects values of the request flags that are out of range.
func (s *Simulation) CheckLoad() error {
	switch {
	case s.Requests < 1 || s.Requests > 100000:
		return fmt.Errorf("--requests %d is out of range; give a number from 1 to 100000", s.Requests)
	case !(s.rate >= 0 && s.rate <= 1e6):
		return fmt.Errorf("--rate %g is out of range; give requests per second, from 0 to 1000000", s.rate)
	case !slices.Contains(replay.Objectives(), s.Objective):
		return flags.Unknown("objective", s.Objective, replay.Objectives()...)
	case s.Ttft <= 0:
		return errors.New("--slo-ttft is not above 0; give a time such as 2s")
	case s.Tpot <= 0:
		return errors.New("--slo-tpot is not above 0; give a time such as 100ms")
	}
	return nil
}

// Load returns the requests that the flags specify, or the defaults of the tuner if --trace is
// empty, as for the verb run.
func (s *Simulation) Load(seed uint64) (ranking.Load, error) {
	if s.Trace == "" {
		return ranking.Load{Seed: seed}, nil
	}
	l := ranking.Load{Requests: s.Requests, Rate: s.rate, Seed: seed,
		Sequential: s.rate == 0 && s.Objective == replay.Latency}
	if _, err := os.Stat(s.Trace); err != nil {
		if l.Workload, err = replay.Named(s.Trace); err != nil {
			err = fmt.Errorf("--trace: %w", err)
		}
		return l, err
	}
	f, err := retention.OpenRegular(s.Trace)
	if err != nil {
		return l, err
	}
	defer f.Close()
	if l.Trace, err = replay.Read(f); err != nil {
		return l, fmt.Errorf("--trace %s: %w", s.Trace, err)
	}
	l.Name, l.Sequential = s.Trace, false
	return l, nil
}

// simulated returns the machine to rank for: that of --machine, else that of --profile, else this
// one, which it measures.
func (f *Flags) simulated(ctx context.Context) (*profiles.Profile, error) {
	name := f.simulation.machine
	if name == "" {
		live, err := f.live()
		if err != nil {
			return nil, err
		}
		return f.host(ctx, live)
	}
	return machine.Named(name)
}

// anchorsWithin limits the time to measure the share of the ceilings that kernels reach.
const anchorsWithin = 10 * time.Second

// runSimulation ranks all configurations by simulation and prints the best ones.
func (f *Flags) runSimulation(ctx context.Context, w io.Writer) error {
	subject, err := session.OpenSubject(f.Session.Model, f.typ)
	if err != nil {
		return exit.Usage(err)
	}
	defer subject.Close()
	load, err := f.simulation.Load(f.Options.Run.Seed)
	if err != nil {
		return exit.Usage(err)
	}
	host, err := f.simulated(ctx)
	if err != nil {
		return err
	}
	if f.Session.ISA != "" {
		if err := f.Session.CheckISA(host); err != nil {
			return exit.Usage(err)
		}
	}
	ops, err := subject.Ops()
	if err != nil {
		return exit.Usage(err)
	}
	o := ranking.Options{Profile: host, Shape: subject.Shape, Model: ops,
		Compute: f.Session.Compute, KV: f.Session.KV, ISA: f.Session.ISA,
		TP: f.Session.Ranks, Threads: f.Session.Threads, Load: load,
		Objective: f.simulation.Objective, SLO: replay.SLO{TTFT: f.simulation.Ttft, TPOT: f.simulation.Tpot},
		TopK: f.Options.Ranking.TopK}
	if f.simulation.machine == "" && f.profile == "" { // this machine, assumed to be idle
		if o.Anchors, err = ranking.Anchors(ctx, o, anchorsWithin); err != nil {
			return err
		}
	}
	update, done := show.FractionBar("ranking")
	o.Progress = func(n, of int) { update(float64(n), float64(of), fmt.Sprintf("%d of %d replays", n, of)) }
	r, err := ranking.Simulate(ctx, o)
	done()
	if err != nil {
		return exit.Usage(err)
	}
	if f.format == "json" {
		return show.JSON(w, newRankingJSON(r, host))
	}
	return printRanking(w, r)
}
