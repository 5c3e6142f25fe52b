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
	"sandwich/runtime/sched"
	"sandwich/tuner/candidates"
	"sandwich/tuner/replay"
)

// SimulateOptions of Simulate. Profile and Shape are needed; everything else has a default.
type SimulateOptions struct {
	Profile *profiles.Profile // of any machine
	Shape   plans.ModelShape
	Model   *model.Model // as its file or configuration describes it; nil where only the shape is known
	Compute string       // as Options has it, and so on
	KV      string
	ISA     string
	TP      int // only this degree; 0: all
	Threads int // at most so many PUs in a phase

	Load      Load
	Objective string // of trace; "": latency
	SLO       replay.SLO
	Anchors   *Calibration // of this machine; nil: what kernels reach is assumed
	Parallel  int          // sequences that run at once; 0: 8
	TopK      int          // candidates to show; 0: 10

	Progress func(replayed, of int) // before each replay; nil: nobody asks
}

// Ranked is a configuration with what the replay of the trace saw under it.
type Ranked struct {
	Config *candidates.Config
	Names  []string // of all configurations that cost the same, its own first
	Cost   *candidates.Cost
	Bytes  map[int]int64 // by memory node

	// tokens/s of a prompt of 512 tokens, and of one sequence behind 128 positions, 0 of a pooled
	// model
	PrefillRate, DecodeRate float64
	Report                  *replay.Report
	Score                   float64 // by the objective: larger is better
	Goodput                 float64 // requests a second; 0 for candidates that are not shown
	estimate                float64 // seconds for all requests of the trace one after the other
}

// Ranking is the candidates of a machine, best first.
type Ranking struct {
	Trees     int
	Truncated bool // there are more trees than were looked at
	Sections  int  // of trees, unlike ones
	Configs   int  // that fit, of which Costs cost unlike
	Costs     int
	Ranked    []*Ranked            // that were replayed
	Near      []*candidates.Config // one step from the best: a PU more or fewer, a rank fewer
	Assumed   []string             // figures that are no measurement of this machine
	Anchors   *Calibration         // that predictions rest on; nil: none was measured
	Load      string               // in words
	Objective string
	SLO       replay.SLO
	TopK      int
	Seconds   float64
	Classes   []ClassRow     // kinds of cores, fastest first; none where all are alike
	Placed    []model.Placed // what each class does of the ops under the best configuration; none likewise
}

// A ranking replays the best by estimate and all that are always there: so many, fewer of a trace
// of many tokens.
const (
	mostReplays  = 200
	leastReplays = 20
	replayTokens = 6e6
)

// Rates of PrefillRate and DecodeRate.
const (
	ratePrompt = 512
	rateDepth  = 128
)

// Simulate ranks every service configuration of a machine by replaying a trace through the
// scheduler that serves, with predicted costs (Sandwich 5.3). All of them are estimated by the sum
// of their requests' forwards; the best by that and those that are always there are replayed.
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

// blocks is how many blocks the KV cache has: those of as many of the longest requests as run at
// once.
func (o *SimulateOptions) blocks() int { return o.Parallel * kvcache.BlocksFor(o.Load.longest()) }

// simulation is one ranking under way.
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
			continue // the model cannot be cut in these proportions
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

// options of a replay.
func (s *simulation) options(r *Ranked, load Load) replay.Options {
	o := replay.Options{Sequential: load.Sequential, Sched: sched.Config{
		Blocks: s.o.blocks(), MaxRunning: s.o.Parallel, Queue: len(load.Trace), Chunk: s.chunk}}
	if !r.Config.Prefill.Equal(r.Config.Decode) {
		o.Switch = s.predictor.Switch(r.Config)
	}
	return o
}

// baseline gives the paper's rival its name: the best even partition without removal.
func (s *simulation) baseline() {
	for _, r := range s.out.Ranked {
		if r.Config.Even() && r.Config.Prefill.Equal(r.Config.Decode) && r.Config.TP() > 1 {
			r.Names = append(r.Names, candidates.VLLMPP)
			return
		}
	}
}

// BytesPerNode lists bytes in order of node ids.
func (r *Ranked) BytesPerNode(nodes []int) []int64 {
	out := make([]int64, len(nodes))
	for i, n := range nodes {
		out[i] = r.Bytes[n]
	}
	return out
}

// String is the ranking in a sentence.
func (r *Ranking) String() string {
	more := ""
	if r.Truncated {
		more = " of more"
	}
	return fmt.Sprintf("%d trees%s, %d sections, %d configurations, %d of unlike cost, %d replayed, in %.1f s",
		r.Trees, more, r.Sections, r.Configs, r.Costs, len(r.Ranked), r.Seconds)
}
