// Package tuner finds the best plan for a model on this machine. It is a pipeline of values; each
// stage is a package with an explicit input and output:
//
//	candidates  service configurations of the machine
//	ranking     the same, best first by prediction
//	shortlist   partitions and sets of active PUs, chosen by whole forwards
//	tables      kernel tables of each
//	finals      the winners of a race of whole configurations
//	steps       the times of decode steps of the winner by their number of rows
//	tuner       the bundle: the plan with its evidence
//
// The stages share a run.Run (budget, journal, progress) and a partition.Loader (weights and
// workers). Races are made of arms.Arm; the comment of package arms says where a kind of arm is
// added.
package tuner

import (
	"context"
	"errors"

	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/tuner/finals"
	"sandwich/tuner/partition"
	"sandwich/tuner/race"
	"sandwich/tuner/ranking"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
	"sandwich/tuner/shortlist"
	"sandwich/tuner/steps"
	"sandwich/tuner/tables"
	"sandwich/tuner/trials"
)

// Tune returns the best plan for the model on this machine that it finds within the budget. It
// first measures the partitions of the model that rank near the best in the simulation, under the
// untuned default plan. For each partition that is not clearly slower it measures sets of active
// PUs and searches kernel tables for the best sets. Finally, whole configurations race with the
// default plan, which wins unless it is beaten. If ctx ends, Tune returns its cause, and the
// journal keeps the measurements.
func Tune(ctx context.Context, o Options) (*bundle.Bundle, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	t, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer t.close()
	out, err := t.measure(ctx)
	if err != nil && !errors.Is(err, run.ErrNoTime) {
		return nil, err
	}
	if out.rerun != nil && o.Race.Reran != nil {
		o.Race.Reran(out.rerun)
	}
	return t.bundle(out)
}

// tuning has what the stages of one call of Tune share.
type tuning struct {
	o      Options
	shape  plans.ModelShape
	effort search.Effort
	ranked *ranking.Ranking
	run    *run.Run
	loader *partition.Loader
	store  *tables.Store
}

// start ranks the configurations and opens the files of the run.
func start(ctx context.Context, o Options) (*tuning, error) {
	t := &tuning{o: o, run: run.New(o.Run)}
	var err error
	if t.shape, err = o.Subject.Shape(); err != nil {
		return nil, err
	}
	if t.ranked, err = rank(ctx, &o, t.shape); err != nil {
		return nil, err
	}
	if t.effort, err = search.ParseEffort(o.Search.Effort); err != nil {
		return nil, err
	}
	if t.loader, err = partition.NewLoader(t.run, &t.o.Subject, t.shape); err != nil {
		return nil, err
	}
	if err = t.run.Open(trials.Key{Fingerprint: o.Subject.Profile.Fingerprint(), Build: o.Run.Build,
		Model: t.shape.Digest(), Seed: o.Run.Seed, Flags: o.flags()}); err != nil {
		return nil, err
	}
	t.store = tables.OpenStore(o.Search.Wisdom, o.Run.Warn)
	return t, nil
}

// close closes the files.
func (t *tuning) close() {
	t.run.Close()
	_ = t.store.Close() // every line was synced when it was written
}

// outcome has the output of the measured stages.
type outcome struct {
	result   finals.Result
	rerun    *finals.Rerun  // nil if not requested
	samples  []evidence.Arm // of the race of partitions
	steps    []evidence.Steps
	kernels  []evidence.Trial
	searches []evidence.Search
	noise    []float64 // A/A differences of kernels, if whole forwards cannot be run
}

// measure runs all measured stages. If the budget is over, it returns the output so far with
// run.ErrNoTime.
func (t *tuning) measure(ctx context.Context) (out outcome, err error) {
	defer t.loader.Close()
	home := t.loader.Home()
	out.result = finals.Default(home)
	if t.o.Race.EverySet {
		if err := finals.EverySetFits(home.Plan.PUs()); err != nil {
			return out, err
		}
	}
	in := shortlist.Input{Run: t.run, Loader: t.loader, Ranking: t.ranked, TopK: t.o.Ranking.TopK, Effort: t.effort,
		AllowTP: t.o.Race.AllowTP}
	list, samples, err := shortlist.Partitions(ctx, in)
	out.samples = samples
	if err != nil {
		return out, err
	}
	entries, err := t.tables(ctx, in, list, &out)
	if err != nil {
		return out, err
	}
	out.result, err = finals.Race(ctx, finals.Input{Run: t.run, Loader: t.loader, Ranking: t.ranked,
		Entries: entries, TopK: t.o.Ranking.TopK, AllowTP: t.o.Race.AllowTP, Device: t.o.Race.Device})
	if err == nil {
		out.steps, err = steps.Measure(ctx, steps.Input{Run: t.run, Loader: t.loader, Result: out.result})
	}
	if err == nil && t.o.Race.Rerun > 0 {
		out.rerun, err = finals.Repeat(ctx, out.result, finals.RerunOptions{Rounds: t.o.Race.Rerun,
			EverySet: t.o.Race.EverySet, AllowTP: t.o.Race.AllowTP})
	}
	return out, err
}

// tables searches the tables of each partition. It adds their evidence to out.
func (t *tuning) tables(ctx context.Context, in shortlist.Input, list []*partition.Partition, out *outcome,
) (entries []finals.Entry, err error) {
	began := float64(t.run.Elapsed()) / float64(t.o.Run.Budget)
	for i, p := range list {
		each := (run.TablesEnd - began) / float64(len(list))
		window := run.NewWindow(began+each*float64(i), began+each*float64(i+1))
		err := t.loader.Open(ctx, p)
		if gone := (*race.Absent)(nil); errors.As(err, &gone) {
			t.run.Reject(p.Name, gone.Why)
			continue
		}
		if err != nil {
			return nil, err
		}
		e, err := t.entry(ctx, in, p, window, out)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// entry chooses the sets of PUs of an open partition and searches their tables. It adds the
// evidence to out.
func (t *tuning) entry(ctx context.Context, in shortlist.Input, p *partition.Partition, window run.Window,
	out *outcome) (e finals.Entry, err error) {
	e.Partition = p
	if e.Sets, err = shortlist.Sets(ctx, in, p, window); err != nil {
		return e, err
	}
	found, err := tables.Search(ctx, tables.Input{Run: t.run, Partition: p, Sets: e.Sets,
		Strategy: t.o.Search.Strategy, Effort: t.effort, Store: t.store, End: window.TablesEnd})
	if err != nil {
		return e, err
	}
	e.Tables = found.Tables
	out.kernels, out.searches = append(out.kernels, found.Kernels...), append(out.searches, found.Searches...)
	if p.Rig == nil {
		out.noise = append(out.noise, found.Noise...)
	}
	return e, nil
}
