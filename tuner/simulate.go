package tuner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/exec"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/sched"
	"sandwich/tuner/candidates"
	"sandwich/tuner/replay"
)

// SimulateOptions configure Simulate. Profile and Shape are required; other fields have defaults.
type SimulateOptions struct {
	Profile *profiles.Profile // of any machine
	Shape   plans.ModelShape
	Model   *model.Model // from its file or configuration; nil if only the shape is known
	Compute string       // this and the following fields as in Options
	KV      string
	ISA     string
	TP      int // only this degree; 0: all
	Threads int // maximum number of PUs in a phase

	Load      Load
	Objective string // of trace; "": latency
	SLO       replay.SLO
	Anchors   *Calibration // of this machine; nil: use assumed fractions of the ceilings
	Parallel  int          // sequences that run at the same time; 0: 8
	TopK      int          // candidates to show; 0: 10

	Progress func(replayed, of int) // called before each replay; may be nil
}

// Ranked is a configuration with the results of the replay of the trace.
type Ranked struct {
	Config *candidates.Config
	Names  []string // of all configurations of equal cost, its own first
	Cost   *candidates.Cost
	Bytes  map[int]int64 // by memory node

	// PrefillRate is in tokens/s of a prompt of 512 tokens, DecodeRate of one sequence after 128
	// positions, 0 of a pooled model.
	PrefillRate, DecodeRate float64
	Report                  *replay.Report
	Score                   float64 // by the objective; larger is better
	Goodput                 float64 // requests per second; 0 for candidates that are not shown
	estimate                float64 // seconds for all requests of the trace, one after the other
}

// Ranking lists the candidates of a machine, best first.
type Ranking struct {
	Trees     int
	Truncated bool // more trees exist than were walked
	Sections  int  // distinct sections of trees
	Configs   int  // configurations that fit; Costs is the number of distinct costs among them
	Costs     int
	Ranked    []*Ranked            // that were replayed
	Near      []*candidates.Config // one step from the best: a PU more or fewer, a rank fewer
	Assumed   []string             // figures that were not measured on this machine
	Anchors   *Calibration         // calibration of the predictions; nil: none
	Load      string               // description of the load
	Objective string
	SLO       replay.SLO
	TopK      int
	Seconds   float64
	Classes   []ClassRow    // core types, fastest first; nil if all are alike
	Placed    []cost.Placed // what each core type does under the best configuration; nil if all are alike
}

// A ranking replays the best candidates by estimate and all that are always included: this many, or
// fewer for a trace of many tokens.
const (
	mostReplays  = 200
	leastReplays = 20
	replayTokens = 6e6
)

// Forwards of PrefillRate and DecodeRate.
const (
	ratePrompt = 512
	rateDepth  = 128
)

// Simulate ranks every service configuration of a machine by replaying a trace through the serving
// scheduler with predicted costs (Sandwich 5.3). It estimates all configurations by the sum of
// their requests' forwards, and replays the best and those that are always included.
func Simulate(ctx context.Context, o SimulateOptions) (*Ranking, error) {
	began := time.Now()
	if err := o.complete(); err != nil {
		return nil, err
	}
	plan, profile, notes, err := o.untuned()
	if err != nil {
		return nil, err
	}
	cache, err := exec.CacheBytes(o.Shape, plan.KV, o.blocks(), o.Parallel, plan.Chunk)
	if err != nil {
		return nil, err
	}
	so := candidates.Options{TP: o.TP, Threads: o.Threads, Cache: cache, Alike: o.Shape.Pooled()}
	space, err := candidates.Enumerate(profile, o.Shape, so)
	if err != nil {
		return nil, err
	}
	predictor, err := candidates.NewPredictor(profile, plan, o.Model, so)
	if err != nil {
		return nil, err
	}
	if o.Anchors.known() {
		predictor.Calibrate(o.Anchors.Types)
	}
	s := &simulation{ctx: ctx, o: o, predictor: predictor, chunk: plan.Chunk,
		out: &Ranking{Trees: space.Trees, Truncated: space.Truncated, Sections: space.Sections,
			Configs: len(space.Configs), Assumed: append(notes, candidates.Assumptions(o.Anchors.near())...),
			Objective: o.Objective,
			SLO:       o.SLO, TopK: o.TopK, Anchors: o.Anchors}}
	if err := s.rank(space); err != nil {
		return nil, err
	}
	if err := s.classes(profile, plan); err != nil {
		return nil, err
	}
	s.out.Seconds = time.Since(began).Seconds()
	return s.out, nil
}

func (o *SimulateOptions) complete() error {
	if o.Objective == "" {
		o.Objective = replay.Latency
	}
	if !slices.Contains(replay.Objectives(), o.Objective) {
		return fmt.Errorf("unknown objective %q; choose one of %s", o.Objective,
			strings.Join(replay.Objectives(), ", "))
	}
	if o.SLO == (replay.SLO{}) {
		o.SLO = replay.DefaultSLO
	}
	if o.Parallel == 0 {
		o.Parallel = 8
	}
	return o.Load.complete(o.Shape.Pooled())
}

// blocks returns the number of blocks of the KV cache: those of the longest request, for each
// request that may run.
func (o *SimulateOptions) blocks() int { return o.Parallel * kvcache.BlocksFor(o.Load.longest()) }

// simulation is the state of one ranking.
type simulation struct {
	ctx       context.Context
	o         SimulateOptions
	predictor *candidates.Predictor
	chunk     int
	out       *Ranking
}

// rank estimates all configurations, joins those of equal cost, and replays the best.
func (s *simulation) rank(space *candidates.Space) error {
	list, err := s.estimate(space.Configs)
	if err != nil {
		return err
	}
	s.out.Costs = len(list)
	base := list[0]
	list = s.refine(space, list)
	slices.SortStableFunc(list, func(a, b *Ranked) int { return cmp.Compare(a.estimate, b.estimate) })
	n := max(leastReplays, min(mostReplays, int(replayTokens)/s.o.Load.outputs()))
	limit := list[min(n, len(list))-1].estimate
	list = slices.DeleteFunc(list, func(r *Ranked) bool { return r.Config.Origin.Always == "" && r.estimate > limit })
	load := s.o.Load.under(base.estimate)
	s.out.Load = load.String()
	for i, r := range list {
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
		if s.o.Progress != nil {
			s.o.Progress(i, len(list))
		}
		if err := s.replay(r, load); err != nil {
			return err
		}
	}
	slices.SortStableFunc(list, func(a, b *Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.estimate, b.estimate))
	})
	s.out.Ranked, s.out.Near = list, space.Neighbors(list[0].Config)
	s.baseline()
	return s.goodput(load)
}

// estimate predicts every configuration and joins those of equal cost.
func (s *simulation) estimate(configs []*candidates.Config) ([]*Ranked, error) {
	bySignature := map[string]*Ranked{}
	var list []*Ranked
	for i, c := range configs {
		if i%256 == 0 && s.ctx.Err() != nil {
			return nil, context.Cause(s.ctx)
		}
		cost, err := s.predictor.Cost(c)
		if err != nil {
			continue // the model cannot be divided in these proportions
		}
		key := cost.Signature()
		if r, ok := bySignature[key]; ok {
			r.Names = append(r.Names, c.Name())
			continue
		}
		r := &Ranked{Config: c, Names: []string{c.Name()}, Cost: cost}
		r.estimate = s.o.Load.seconds(cost, s.chunk)
		if math.IsNaN(r.estimate) || math.IsInf(r.estimate, 0) {
			continue
		}
		bySignature[key] = r
		list = append(list, r)
	}
	if len(list) == 0 {
		return nil, errors.New("no service configuration can be predicted: the profile has no figures for it")
	}
	return list, nil
}

// replay runs the trace under one configuration.
func (s *simulation) replay(r *Ranked, load Load) error {
	report, err := replay.Run(load.Trace, r.Cost, s.options(r, load))
	if err != nil {
		return err
	}
	r.Report, r.Bytes = report, s.predictor.Bytes(r.Config)
	r.PrefillRate = ratePrompt / r.Cost.PrefillSeconds(ratePrompt)
	if !s.o.Shape.Pooled() {
		r.DecodeRate = 1 / r.Cost.DecodeSeconds(1, rateDepth)
	}
	r.Score, err = report.Score(s.o.Objective, s.o.SLO)
	return err
}

// options returns the options of a replay.
func (s *simulation) options(r *Ranked, load Load) replay.Options {
	o := replay.Options{Sequential: load.Sequential, Sched: sched.Config{
		Blocks: s.o.blocks(), MaxRunning: s.o.Parallel, Queue: len(load.Trace), Chunk: s.chunk}}
	if !r.Config.Prefill.Equal(r.Config.Decode) {
		o.Switch = s.predictor.Switch(r.Config)
	}
	return o
}

// baseline names the baseline of the paper: the best even partition without removal.
func (s *simulation) baseline() {
	for _, r := range s.out.Ranked {
		if r.Config.Even() && r.Config.Prefill.Equal(r.Config.Decode) && r.Config.TP() > 1 {
			r.Names = append(r.Names, candidates.VLLMPP)
			return
		}
	}
}

// BytesPerNode returns bytes in the order of node ids.
func (r *Ranked) BytesPerNode(nodes []int) []int64 {
	out := make([]int64, len(nodes))
	for i, n := range nodes {
		out[i] = r.Bytes[n]
	}
	return out
}

// String summarizes the ranking.
func (r *Ranking) String() string {
	more := ""
	if r.Truncated {
		more = " of more"
	}
	return fmt.Sprintf("%d trees%s, %d sections, %d configurations, %d of distinct cost, %d replayed, in %.1f s",
		r.Trees, more, r.Sections, r.Configs, r.Costs, len(r.Ranked), r.Seconds)
}
