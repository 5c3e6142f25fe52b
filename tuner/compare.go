package tuner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/runtime/pool"
	"sandwich/tuner/measure"
	"sandwich/tuner/ranking"
	"sandwich/tuner/search"
	"sandwich/tuner/trials"
)

// CompareOptions configure a comparison of searches on one weight shape: the ablation of Sandwich
// section 8.3.
type CompareOptions struct {
	Options
	Key        plans.WeightKey
	MaxM       int      // 0: 2048
	HeldOut    []int    // M at which the tables are judged; nil: 8 values between the anchors
	Strategies []string // nil: all
	Sigmas     []int    // of the strategy sandwich, one row each; nil: 16
	// PerM is the time per held-out M of strategies that search each M separately; 0: one minute.
	PerM time.Duration
}

// CompareRow is the result of one strategy. All strategies are timed interleaved at the held-out M.
type CompareRow struct {
	Strategy     string  `json:"strategy"`
	Sigma        int     `json:"sigma,omitempty"`
	GFLOPS       float64 `json:"gflops"`                  // geometric mean over the held-out M
	Mean         float64 `json:"mean_gflops"`             // arithmetic mean over them
	OfBest       float64 `json:"of_best"`                 // GFLOPS relative to the best row
	OfExhaustive float64 `json:"of_exhaustive,omitempty"` // Mean relative to the row exhaustive
	Seconds      float64 `json:"seconds"`                 // of the search
	// extrapolated to every M, for strategies that search each M separately
	AllM   float64 `json:"seconds_all_m,omitempty"`
	Trials int     `json:"trials"`
	Trial  float64 `json:"trial_seconds,omitempty"` // median
	Rules  int     `json:"rules"`
	// Held-out M at which the time ended before the grid was complete.
	Unfinished []int       `json:"unfinished,omitempty"`
	Held       []HeldPoint `json:"held_out"`
	rules      []plans.Rule
}

// HeldPoint is the speed of a table at one held-out M.
type HeldPoint struct {
	M      int     `json:"m"`
	GFLOPS float64 `json:"gflops"`
}

// Compare searches one weight shape with each strategy and judges the tables at held-out M. Each
// strategy has the whole budget and does not start from the untuned default. Strategies that search
// every M separately search the held-out M only. The row "default" is the untuned table.
func Compare(ctx context.Context, o CompareOptions) ([]CompareRow, error) {
	o.fill()
	o.Options.SeqMax = o.MaxM
	shape := o.shape()
	if o.Began.IsZero() {
		o.Began = time.Now()
	}
	run := &tuning{ctx: ctx, o: o.Options, shape: shape}
	t := &partition{tuning: run}
	run.home = t
	defer t.close()
	defer t.shut()
	if err := o.checkCompare(); err != nil {
		return nil, err
	}
	if err := t.prepareCompare(o); err != nil {
		return nil, err
	}
	var rows []CompareRow
	var err error
	t.workers.Pool.Lead(func(l *pool.Leader) { rows, err = t.compare(l, o) })
	return rows, err
}

// oneWeight returns the shape of a model that has only one weight, count times.
func oneWeight(k plans.WeightKey, count int) plans.ModelShape {
	return plans.ModelShape{Arch: "llama", Name: k.String(), Hidden: k.K, Layers: 1, Heads: 1, KVHeads: 1,
		HeadDim: 64, FFN: 1, Vocab: 1,
		Weights: []plans.WeightShape{{Role: "q", N: k.N, K: k.K, Type: k.Type, Count: count}}}
}

// shape returns the shape of a model that has only the weight, as often as trials cycle through it.
func (o *CompareOptions) shape() plans.ModelShape {
	return oneWeight(o.Key, min(maxCompared, 1+compareBytes/max(1, measure.PackedBytes(o.Key))))
}

// comparedRows are the M at which searches are compared, between those that they search.
var comparedRows = []int{9, 11, 23, 45, 100, 300, 700, 1500}

// compareBytes is the number of bytes of weights through which a comparison cycles.
const compareBytes = 1 << 30

// maxCompared bounds the number of weights in the model of a comparison, as plans do.
const maxCompared = 1 << 20

func (o *CompareOptions) fill() {
	if o.MaxM == 0 {
		o.MaxM = 2048
	}
	if o.HeldOut == nil {
		for _, m := range comparedRows {
			if m <= o.MaxM {
				o.HeldOut = append(o.HeldOut, m)
			}
		}
		if o.HeldOut == nil {
			o.HeldOut = []int{o.MaxM}
		}
	}
	if o.Strategies == nil {
		o.Strategies = search.Strategies()
	}
	if o.Sigmas == nil {
		o.Sigmas = []int{search.DefaultSigma}
	}
	if o.Budget == 0 {
		o.Budget = 90 * time.Second
	}
	if o.PerM == 0 {
		o.PerM = time.Minute
	}
	if o.Effort == "" {
		o.Effort = search.Standard.Name
	}
}

func (o *CompareOptions) checkCompare() error {
	if o.Profile == nil {
		return errors.New("comparing searches needs a host profile")
	}
	for _, s := range o.Strategies {
		if search.About(s) == "" {
			return fmt.Errorf("unknown search strategy %q; choose one of %v", s, search.Strategies())
		}
	}
	for _, m := range o.HeldOut {
		if m < 1 || m > o.MaxM {
			return fmt.Errorf("held-out m %d is not within 1 and %d", m, o.MaxM)
		}
	}
	return o.checkHost()
}

// journalKey identifies everything that a comparison times, regardless of the strategy that
// requests it, so that a later comparison can continue.
func (o *CompareOptions) journalKey(shape plans.ModelShape) trials.Key {
	return trials.Key{Fingerprint: o.Profile.Fingerprint(), Build: o.Build, Model: shape.Digest(), Seed: o.Seed,
		Flags: fmt.Sprintf("%s budget-per-m=%s held-out=%v", o.flags(), o.PerM, o.HeldOut)}
}

func (t *partition) prepareCompare(o CompareOptions) (err error) {
	maxM := o.MaxM
	if t.effort, err = search.ParseEffort(t.o.Effort); err != nil {
		return err
	}
	if t.def, err = heuristic.Default(t.o.Profile, t.shape, heuristic.Options{Compute: t.o.Compute, ISA: t.o.ISA,
		Threads: t.o.Threads, SeqMax: maxM}); err != nil {
		return err
	}
	t.def.Chunk = maxM // every M is searched
	if t.shapes, err = t.def.TableShapes(t.def.PUs()); err != nil {
		return err
	}
	t.isa = t.def.ISAOf("")
	if o.Journal != "" {
		if t.journal, err = trials.OpenJournal(o.Journal, o.journalKey(t.shape), true); err != nil {
			return err
		}
	}
	t.rec = trials.NewRecorder(t.journal)
	set := ranking.ActiveSet{Name: "default", PUs: t.def.Prefill.PUs}
	t.phases = [2]phaseTuning{{name: phaseNames[prefill], sets: []ranking.ActiveSet{set}},
		{name: phaseNames[decode], sets: []ranking.ActiveSet{set}}}
	return t.start(set.PUs)
}

func (t *partition) compare(l *pool.Leader, o CompareOptions) ([]CompareRow, error) {
	b, err := measure.NewGemmBench(t.ctx, l, t.workers, t.benchSize(), t.o.Seed)
	if err != nil {
		return nil, err
	}
	defer b.Free()
	t.rec.Use(b)
	ph := phaseOf(t.def, prefill)
	rows := []CompareRow{{Strategy: "default", Rules: len(ph.Tables[0].Rules), rules: ph.Tables[0].Rules}}
	p, err := t.problem(b.WeightBytes(), &job{phase: prefill, pus: t.def.Prefill.PUs, key: o.Key, shape: t.shapes[0]},
		nil)
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
			row, err := t.compareOne(p, o, s, sigma)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, t.judgeRows(b, p, o, rows)
}

// compareOne searches with one strategy.
func (t *partition) compareOne(p search.Problem, o CompareOptions, strategy string, sigma int) (CompareRow, error) {
	budget := o.Budget
	if search.PerShape(strategy) {
		p.Anchors = o.HeldOut
		budget = o.PerM * time.Duration(len(o.HeldOut))
	}
	// Each strategy has its own trials.
	t.rec.On(fmt.Sprintf("%s for %s %d", t.phases[prefill].sets[0].PUs, strategy, sigma))
	began := t.elapsed()
	r, err := search.Search(t.ctx, p, t.rec, search.Options{Strategy: strategy, Effort: t.effort, Sigma: sigma,
		Seed: t.o.Seed, Budget: budget, Alone: true, Clock: t.elapsed,
		Progress: func(e search.Event) { t.say(strategy, eventText(e), false) }})
	if err != nil {
		return CompareRow{}, err
	}
	row := CompareRow{Strategy: strategy, Sigma: sigma, Seconds: (t.elapsed() - began).Seconds(), Trials: r.Trials,
		Trial: r.Trial,
		Rules: len(r.Rules), Unfinished: r.Unfinished, rules: r.Rules}
	if search.PerShape(strategy) {
		row.AllM = allM(strategy, row, o)
	}
	return row, nil
}

// allM extrapolates a search of the held-out M to every M: static tuning by its number of trials
// and the median duration of a trial, others by their total time.
func allM(strategy string, row CompareRow, o CompareOptions) float64 {
	if strategy == "static" {
		return row.Trial * search.StaticTrials * float64(o.MaxM)
	}
	return row.Seconds / float64(len(o.HeldOut)) * float64(o.MaxM)
}
