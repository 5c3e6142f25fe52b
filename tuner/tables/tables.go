// Package tables searches a kernel table for every weight shape of a partition, on every set of
// active PUs that the shortlist left. Its output has the tables with the evidence of the searches.
package tables

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/profiles"
	"sandwich/runtime/phase"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure/kernels"
	"sandwich/tuner/partition"
	"sandwich/tuner/ranking"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
)

// Options configure the searches.
type Options struct {
	Effort   string // quick, standard, full; "": what suits the budget
	Strategy string // "": sandwich
	Wisdom   string // path of what earlier runs' kernel searches found (trials.WisdomPath), "" for none
}

// Input is what tables are searched for.
type Input struct {
	Run       *run.Run
	Partition *partition.Partition // open
	Sets      [phase.Count][]ranking.ActiveSet
	Strategy  string
	Effort    search.Effort
	Store     *Store
	End       float64 // part of the budget at which the searches end
}

// Output has the tables of a partition.
type Output struct {
	Tables   [phase.Count][][]plans.Table // of each phase and set
	Kernels  []evidence.Trial
	Searches []evidence.Search
	Noise    []float64 // A/A difference of the trials of each search
}

// Search searches all tables. Decode comes first, because its results for few rows apply to prefill
// on the same PUs.
func Search(ctx context.Context, in Input) (out Output, err error) {
	s := &searcher{Input: in, problems: Problems{Partition: in.Partition, Effort: in.Effort, Budget: in.Run.Budget}}
	in.Partition.Workers.Pool.Lead(func(l *pool.Leader) { err = s.searchAll(ctx, l) })
	return s.out, err
}

// searcher is the state of one call of Search.
type searcher struct {
	Input
	problems Problems
	out      Output
}

func (s *searcher) searchAll(ctx context.Context, l *pool.Leader) error {
	jobs := s.problems.jobs(s.Sets)
	bench := &bench{s: s, l: l}
	defer bench.free()
	total := 0.0
	for _, j := range jobs {
		total += j.weight
	}
	left, all := total, s.Run.Until(s.End)
	for i, j := range jobs {
		budget := max(0, time.Duration(float64(s.Run.Until(s.End))*j.weight/left))
		share := max(0, all.Seconds()*j.weight/total)
		left -= j.weight
		if err := s.searchOne(ctx, bench, j, jobs[:i], budget, share); err != nil {
			return err
		}
	}
	s.collect(jobs)
	return nil
}

// collect sets the tables of the output, in the order of plan files. Tables without a job are those
// of the default plan.
func (s *searcher) collect(jobs []*Job) {
	p := s.Partition
	for _, ph := range phase.All {
		s.out.Tables[ph] = make([][]plans.Table, len(s.Sets[ph]))
	}
	for _, class := range s.problems.classes() {
		for _, c := range p.Shapes {
			for _, ph := range phase.All {
				for set := range s.out.Tables[ph] {
					table, _ := p.Phase(ph).TableOf(class, c.WeightKey)
					found := plans.Table{WeightKey: c.WeightKey, Class: class, Rules: table.Rules}
					for _, j := range jobs {
						if j.Phase == ph && j.set == set && j.class == class && j.key() == c.WeightKey {
							found.Rules = j.result.Rules
						}
					}
					s.out.Tables[ph][set] = append(s.out.Tables[ph][set], found)
				}
			}
		}
	}
}

// bench holds the operands that kernels are timed on. They are allocated before the first trial.
type bench struct {
	s     *searcher
	l     *pool.Leader
	bench *kernels.GemmBench
	size  kernels.GemmSize
}

// weightBytes returns the bytes of weights that fit in the operands.
func (b *bench) weightBytes() int {
	if b.size.Round == 0 {
		b.size = b.s.problems.BenchSize()
	}
	return b.size.Round + b.size.Copy
}

// ready activates the PUs of a job and fills the operands, so that the first trial does not include
// this time.
func (b *bench) ready(ctx context.Context, j *Job, p search.Problem) (err error) {
	workers := b.s.Partition.Workers
	if b.weightBytes(); b.bench == nil {
		if b.bench, err = kernels.NewGemmBench(ctx, b.l, workers, b.size, b.s.Run.Seed); err != nil {
			return err
		}
	}
	active, err := workers.On(j.PUs.Slice())
	if err != nil {
		return err
	}
	if _, err := b.l.SetActive(active); err != nil {
		return err
	}
	var groups *pool.Grouping
	if j.Shape.PerRank {
		groups = workers.Grouping()
	}
	b.bench.Use(groups)
	b.s.Run.Recorder.Use(b.bench)
	return b.bench.Prepare(j.key(), p.Anchors[len(p.Anchors)-1], p.Compute)
}

func (b *bench) free() {
	if b.bench != nil {
		b.bench.Free()
	}
}

// minBudget is the minimum time of a search.
const minBudget = 10 * time.Millisecond

// searchOne searches one table within a budget. share is its time in seconds if no earlier table
// left any. Anchors that an earlier run finished are reused.
func (s *searcher) searchOne(ctx context.Context, b *bench, j *Job, earlier []*Job, budget time.Duration,
	share float64) error {
	p, err := s.problems.New(b.weightBytes(), j, earlier)
	if err != nil {
		return err
	}
	name := s.problems.problemName(j, &p, s.Strategy)
	share /= float64(len(p.Anchors))
	kept, more := s.Store.lookup(name, p, s.Effort, share)
	j.kept = len(kept)
	p.Known = append(p.Known, kept...)
	p.Hints = func(m int) []plans.Schedule {
		out := hints(j, earlier, m)
		if s, ok := more[m]; ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
		return out
	}
	s.Run.Recorder.On(j.PUs.String())
	if budget < minBudget {
		budget = 0 // keep the incumbents
	} else if !p.Complete() {
		if err := b.ready(ctx, j, p); err != nil {
			return err
		}
	}
	base, began := s.Run.Trials, s.Run.Elapsed()
	j.result, err = search.Search(ctx, p, s.Run.Recorder, search.Options{
		Strategy: s.Strategy, Effort: s.Effort, Seed: s.Run.Seed, Budget: budget, Clock: s.Run.Elapsed,
		Progress: func(e search.Event) {
			s.Run.Trials = base + e.Trials
			s.Run.Say("kernels", Describe(e), false)
		},
	})
	if err != nil {
		return err
	}
	s.Store.keep(name, j.result, p.Known, s.Effort, share)
	s.Run.Trials = base + j.result.Trials
	j.took = s.Run.Elapsed() - began
	s.record(j)
	return nil
}

// Describe describes the progress of a search, the best result first, because a terminal truncates
// the end of a line.
func Describe(e search.Event) string {
	text := fmt.Sprintf("%s %s m %d, best %.4g GFLOP/s", e.Phase, e.Key, e.M, e.GFLOPS)
	if e.OfCeiling > 0 {
		text += fmt.Sprintf(", %.0f %% of the ceiling", 100*e.OfCeiling)
	}
	return fmt.Sprintf("%s; %s: %s", text, e.Stage, e.Schedule)
}

// record writes a finished table into the evidence.
func (s *searcher) record(j *Job) {
	r, ph := j.result, j.Phase.String()
	for _, a := range r.Anchors {
		if len(a.Seconds) > 0 && j.set == 0 {
			s.out.Kernels = append(s.out.Kernels, evidence.Trial{Phase: ph, Weight: j.key(), M: a.M,
				Schedule: a.Schedule.String(), Tried: a.Tried, Seconds: profiles.NewFigure("s", a.Seconds)})
		}
	}
	s.out.Searches = append(s.out.Searches, evidence.Search{Phase: ph, PUs: j.PUs.String(), Weight: j.key(),
		Lengths: len(r.Anchors) - r.Cut, Trials: r.Trials, Noise: num.Significant(r.Noise), Reopened: r.Reopened,
		Reused: r.Reused, Cut: r.Cut, Kept: j.kept, Seconds: num.Significant(j.took.Seconds())})
	s.out.Noise = append(s.out.Noise, r.Noise)
	if r.Cut > 0 {
		s.Run.Reject(fmt.Sprintf("%s %s on PUs %s", ph, j.key(), j.PUs),
			fmt.Sprintf("%d of %d lengths were not searched: the budget was over", r.Cut, len(r.Anchors)))
	}
	for _, x := range r.Rejected {
		s.Run.Reject(x.Candidate, x.Reason)
	}
}
