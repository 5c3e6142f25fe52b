package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/client"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/runtime/sched"
	"sandwich/runtime/session"
	"sandwich/tuner/measure/load"
	"sandwich/tuner/replay"
)

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
	t, err := f.random(scale)
	if err == nil && len(t) == 0 {
		err = errors.New("no request arrives in this time; raise --reactive, --proactive or --duration")
	}
	return t, err
}

// random returns random arrivals with their rates multiplied by scale. There may be none.
func (f *loadFlags) random(scale float64) (replay.Trace, error) {
	var of []replay.Arrivals
	for class, rate := range f.rates {
		list, err := replay.SetsOf(f.sets[class], sched.Class(class))
		if err != nil {
			return nil, fmt.Errorf("--%s-set: %w", sched.Class(class), err)
		}
		of = append(of, replay.Arrivals{Class: sched.Class(class), Rate: rate * scale, Sets: list})
	}
	return replay.Poisson(f.during, f.seed, f.sizes.Context, of...), nil
}

// offer offers the arrivals and prints the results.
func (f *loadFlags) offer(ctx context.Context, out io.Writer, format string) error {
	if err := f.check(); err != nil {
		return err
	}
	t, err := f.recorded(ctx)
	if err != nil {
		return err
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

// recorded returns the arrivals, and writes them to the file of --record.
func (f *loadFlags) recorded(ctx context.Context) (replay.Trace, error) {
	t, err := f.arrivals(1)
	if err != nil {
		return nil, exit.Usage(err)
	}
	if f.record == "" {
		return t, nil
	}
	return t, outfile.Write(ctx, f.record, t.Write)
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
	for _, policy := range f.policies {
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
		show.Notice(fmt.Sprintf("%d of %d requests exceed %d tokens, prompt and answer, and are shortened",
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
	show.Notice(fmt.Sprintf("policy %s: %s in %s", sizes.Policy, message.Plural(len(t), "request"),
		t[len(t)-1].At.Round(time.Second)))
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
