// Package compare compares kernel searches with each other and with the default heuristic: on one
// weight shape on this machine, and on grids, recorded tables of timed schedules.
package compare

import (
	"context"
	"fmt"
	"time"

	"sandwich/plans/heuristic"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure/kernels"
	"sandwich/tuner/partition"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
	"sandwich/tuner/tables"
)

// Searches runs each strategy on one weight shape and judges the tables at held-out M. Each
// strategy has the whole budget and does not start from the untuned default. Strategies that search
// every M separately search the held-out M only. The row "default" is the untuned table.
func Searches(ctx context.Context, o Options) ([]Row, error) {
	o.fill()
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Run.Resume = true
	c := &comparison{ctx: ctx, o: o, run: run.New(o.Run)}
	defer c.run.Close()
	if err := c.prepare(); err != nil {
		return nil, err
	}
	defer c.home.Shut()
	var rows []Row
	var err error
	c.home.Workers.Pool.Lead(func(l *pool.Leader) { rows, err = c.compare(l) })
	return rows, err
}

// comparison is the state of one call of Searches.
type comparison struct {
	ctx      context.Context
	o        Options
	run      *run.Run
	home     *partition.Partition
	problems tables.Problems
}

// prepare opens the journal and starts the workers.
func (c *comparison) prepare() (err error) {
	o := &c.o
	effort, err := search.ParseEffort(o.Effort)
	if err != nil {
		return err
	}
	subject := &partition.Subject{Profile: o.Profile, Plan: heuristic.Options{Compute: o.Compute, ISA: o.ISA,
		Threads: o.Threads, SeqMax: o.MaxM}}
	shape := o.shape()
	if c.home, err = partition.New(subject, shape, nil); err != nil {
		return err
	}
	c.home.Plan.Chunk = o.MaxM // every M is searched
	c.problems = tables.Problems{Partition: c.home, Effort: effort, Budget: o.Run.Budget}
	if err := c.run.Open(o.journalKey(shape)); err != nil {
		return err
	}
	return c.home.Start(c.home.Plan.Prefill.PUs)
}

func (c *comparison) compare(l *pool.Leader) ([]Row, error) {
	o, plan := c.o, c.home.Plan
	b, err := kernels.NewGemmBench(c.ctx, l, c.home.Workers, c.problems.BenchSize(), o.Run.Seed)
	if err != nil {
		return nil, err
	}
	defer b.Free()
	c.run.Recorder.Use(b)
	rules := plan.Prefill.Tables[0].Rules
	rows := []Row{{Strategy: "default", Rules: len(rules), rules: rules}}
	p, err := c.problems.New(b.WeightBytes(), &tables.Job{PUs: plan.Prefill.PUs, Shape: c.home.Shapes[0]}, nil)
	if err == nil { // so that the first trial does not include filling the operands
		err = b.Prepare(o.Key, p.Anchors[len(p.Anchors)-1], p.Compute)
	}
	if err != nil {
		return nil, err
	}
	for _, s := range o.Strategies {
		sigmas := o.Sigmas
		if s != search.Strategies()[0] {
			sigmas = []int{0}
		}
		for _, sigma := range sigmas {
			row, err := c.one(p, s, sigma)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, c.judge(b, p, rows)
}

// one searches with one strategy.
func (c *comparison) one(p search.Problem, strategy string, sigma int) (Row, error) {
	o := c.o
	budget := o.Run.Budget
	if search.PerShape(strategy) {
		p.Anchors = o.HeldOut
		budget = o.PerM * time.Duration(len(o.HeldOut))
	}
	// Each strategy has its own trials.
	c.run.Recorder.On(fmt.Sprintf("%s for %s %d", c.home.Plan.Prefill.PUs, strategy, sigma))
	began := c.run.Elapsed()
	r, err := search.Search(c.ctx, p, c.run.Recorder, search.Options{Strategy: strategy, Effort: c.problems.Effort,
		Sigma: sigma, Seed: o.Run.Seed, Budget: budget, Alone: true, Clock: c.run.Elapsed,
		Progress: func(e search.Event) { c.run.Say(strategy, tables.Describe(e), false) }})
	if err != nil {
		return Row{}, err
	}
	row := Row{Strategy: strategy, Sigma: sigma, Seconds: (c.run.Elapsed() - began).Seconds(), Trials: r.Trials,
		Trial: r.Trial, Rules: len(r.Rules), Unfinished: r.Unfinished, rules: r.Rules}
	if search.PerShape(strategy) {
		row.AllM = allM(strategy, row, o)
	}
	return row, nil
}

// allM extrapolates a search of the held-out M to every M: static tuning by its number of trials
// and the median duration of a trial, others by their total time.
func allM(strategy string, row Row, o Options) float64 {
	if strategy == "static" {
		return row.Trial * search.StaticTrials * float64(o.MaxM)
	}
	return row.Seconds / float64(len(o.HeldOut)) * float64(o.MaxM)
}
