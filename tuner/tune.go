package tuner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/thumb"
	"sandwich/runtime/exec"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
	"sandwich/tuner/search"
)

// Parts of the budget at which the stages end. Loading the model counts; what a stage leaves over,
// the next one has.
const (
	setsEnd      = 0.15
	kernelsEnd   = 0.80
	finalistsEnd = 0.97
)

// Tune makes the best plan it can find for the model on this machine within the budget: it measures
// candidate sets of active PUs for each phase with the untuned default, searches kernel tables for
// the best ones, and measures whole forwards under the finalists, interleaved with the default,
// which wins wherever it is not beaten. When ctx ends, the error is its cause and the journal keeps
// what was timed.
func Tune(ctx context.Context, o Options) (*plans.Bundle, error) {
	began := time.Now()
	if err := o.complete(); err != nil {
		return nil, err
	}
	ranking, err := o.ranking(ctx)
	if err != nil {
		return nil, err
	}
	t := &tuning{ctx: ctx, o: o, began: began, ranking: ranking}
	defer t.close()
	if err := t.describe(); err != nil {
		return nil, err
	}
	if err := t.openJournal(); err != nil {
		return nil, err
	}
	if err := t.openWisdom(); err != nil {
		return nil, err
	}
	var ranks chosenRanks
	if o.TP == 0 && o.Threads == 0 {
		if ranks, err = t.chooseRanks(ranking.severalRanks(o.TopK)); err != nil {
			return nil, err
		}
	}
	if t.o.service = ranks.service; t.o.service != nil {
		if err := t.describe(); err != nil {
			return nil, err
		}
	}
	if err := t.ready(); err != nil {
		return nil, err
	}
	t.evidence.Rejected, t.evidence.Finalists = append(ranks.rejected, t.evidence.Rejected...), ranks.arms
	t.workers.Pool.Lead(func(l *pool.Leader) { err = t.work(l) })
	if err != nil {
		return nil, err
	}
	return t.bundle()
}

// tuning is one Tune under way.
type tuning struct {
	ctx     context.Context
	o       Options
	began   time.Time
	ranking *Ranking // of all service configurations, simulated
	effort  search.Effort
	shape   plans.ModelShape
	def     *plans.Plan        // the untuned default: incumbent of every search, and a finalist
	shapes  []plans.TableShape // of its tables
	isa     microkernel.ISA
	workers *exec.Workers // one for each usable PU
	rig     *rig          // nil where the model cannot be run here; rigless says why
	journal *journal
	wisdom  *wisdom
	rec     *recorder

	phases   [2]phaseTuning // prefill, decode
	evidence plans.Evidence
	noise    []float64 // A/A differences: of whole forwards, or of kernels where there is no rig
	said     time.Time
}

// phaseTuning is what is found out about one phase.
type phaseTuning struct {
	name   string
	sets   []activeSet     // that survive, best first
	tables [][]plans.Table // by set
	winner plans.Phase
	set    activeSet // of the winner

	measured bool // the winner was chosen by measurement; false where the budget was over before
}

const (
	prefill = 0
	decode  = 1
)

// openJournal begins the journal, or goes on with that of an earlier run.
func (t *tuning) openJournal() (err error) {
	if t.o.Journal != "" {
		key := journalKey{Fingerprint: t.o.Profile.Fingerprint(), Build: t.o.Build, Model: t.shape.Digest(),
			Seed: t.o.Seed, Flags: t.o.flags()}
		if t.journal, err = openJournal(t.o.Journal, key, t.o.Resume); err != nil {
			return err
		}
	}
	t.rec = newRecorder(nil, t.journal)
	return nil
}

// openWisdom reads what earlier runs found.
func (t *tuning) openWisdom() (err error) {
	if t.o.Wisdom != "" {
		t.wisdom, err = openWisdom(t.o.Wisdom)
	}
	return err
}

// ready starts the workers and loads the model.
func (t *tuning) ready() error {
	if err := t.start(t.usable()); err != nil {
		return err
	}
	return t.load()
}

// start starts the workers.
func (t *tuning) start(pus []int) (err error) {
	o := exec.PlanWorkers(t.def)
	o.PUs = pus
	t.workers, err = exec.NewWorkers(o)
	return err
}

// describe fills in the shape of the model and the default plan.
func (t *tuning) describe() (err error) {
	if t.effort, err = search.ParseEffort(t.o.Effort); err != nil {
		return err
	}
	if t.shape, err = shapeOf(t.o); err != nil {
		return err
	}
	t.def, err = thumb.Default(t.o.Profile, t.shape, thumb.Options{Compute: t.o.Compute, KV: t.o.KV,
		ISA:     t.o.ISA,
		Threads: t.o.Threads, TP: t.o.TP, Service: t.o.service, SeqMax: t.o.SeqMax, BatchMax: t.o.BatchMax})
	if err != nil {
		return err
	}
	if t.shapes, err = t.def.TableShapes(t.def.PUs()); err != nil {
		return err
	}
	t.isa = exec.PlanISA(t.def)
	t.phases[prefill].name, t.phases[decode].name = "prefill", "decode"
	t.evidence = plans.Evidence{Version: t.def.Version, Model: t.o.Origin,
		Build: t.o.Build, Created: t.began.UTC().Format(time.RFC3339), Strategy: t.o.Strategy,
		Effort: t.o.Effort, Seed: t.o.Seed, Budget: t.o.Budget.Seconds()}
	if !search.PerShape(t.o.Strategy) {
		t.evidence.EarlyStop = search.ReuseCriterion()
	}
	return nil
}

// shapeOf is the shape of the model to tune for.
func shapeOf(o Options) (plans.ModelShape, error) {
	if o.File != nil {
		return model.ShapeOf(o.File)
	}
	return o.Config.Shape(o.Type)
}

// usable is the PUs that candidates are made of.
func (t *tuning) usable() []int {
	if t.o.Threads > 0 || len(t.def.Ranks) > 1 { // the user has chosen, or each PU has its rank
		return t.def.PUs()
	}
	return t.o.Profile.UsablePUs()
}

// decodeDepth is how many positions each sequence of a decode forward has before it.
const decodeDepth = 128

// load brings the model, or random weights of its shapes, into the rig. A model that does not fit
// in memory is tuned without finalists.
func (t *tuning) load() error {
	t.say("loading", "the weights of "+t.shape.Name, true)
	file, part := t.o.File, ""
	if file == nil {
		var err error
		if file, part, err = randomModel(t.ctx, *t.o.Config, t.o.Type, t.randomBytes(), t.o.Seed); err != nil {
			return t.withoutRig(err)
		}
	}
	r, err := newRig(t.ctx, t.workers, file, t.def, t.rigSize())
	if err != nil {
		return t.withoutRig(err)
	}
	r.part, r.seed = part, t.o.Seed
	t.rig = r
	return nil
}

func (t *tuning) rigSize() rigSize {
	return rigSize{batch: t.def.BatchMax, depth: min(decodeDepth, max(1, t.shape.Context-1))}
}

// withoutRig goes on without whole forwards when the model cannot be run but can be tuned by shape.
func (t *tuning) withoutRig(err error) error {
	if cause := context.Cause(t.ctx); cause != nil {
		return cause
	}
	if t.o.File != nil {
		return err
	}
	t.reject("finalists", "whole forwards cannot be measured: "+err.Error())
	return nil
}

// work is everything that is timed, on the thread that leads the pool.
func (t *tuning) work(l *pool.Leader) error {
	if err := t.chooseSets(l); err != nil {
		return err
	}
	if err := t.searchTables(l); err != nil {
		return err
	}
	return t.chooseWinners(l)
}

// elapsed is the time that counts against the budget: that of this run, and what the trials took
// that a resumed journal answered.
func (t *tuning) elapsed() time.Duration { return time.Since(t.began) + t.rec.replayed }

// until is the time left before a part of the budget is used up.
func (t *tuning) until(part float64) time.Duration {
	return time.Duration(part*float64(t.o.Budget)) - t.elapsed()
}

// say reports progress, at most some ten times a second unless it must be heard.
func (t *tuning) say(stage, text string, must bool) {
	if t.o.Progress == nil || !must && time.Since(t.said) < 100*time.Millisecond {
		return
	}
	t.said = time.Now()
	t.o.Progress(Progress{Stage: stage, Text: text, Elapsed: t.elapsed(), Budget: t.o.Budget,
		Trials: t.evidence.Trials})
}

// maxRejected keeps evidence readable on machines with very many candidates.
const maxRejected = 200

func (t *tuning) reject(candidate, reason string) {
	if len(t.evidence.Rejected) < maxRejected {
		t.evidence.Rejected = append(t.evidence.Rejected, plans.Rejected{Candidate: candidate, Reason: reason})
	}
}

func (t *tuning) close() {
	if t.rig != nil {
		t.rig.close()
	}
	if t.workers != nil {
		t.workers.Close()
	}
	if t.journal != nil {
		t.journal.close()
	}
	t.wisdom.close()
}

// bundle writes the winners down.
func (t *tuning) bundle() (*plans.Bundle, error) {
	p := *t.def
	p.Name = t.o.Name
	if p.Name == "" {
		p.Name = planName(t.shape.Name)
	}
	p.Tuned = t.phases[prefill].measured || t.phases[decode].measured
	p.Prefill, p.Decode = t.phases[prefill].winner, t.phases[decode].winner
	s, err := t.service()
	if err != nil {
		return nil, fmt.Errorf("the tuned plan is not valid: %w", err)
	}
	p.Use(s)
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("the tuned plan is not valid: %w", err)
	}
	for _, x := range t.noise {
		t.evidence.Noise = max(t.evidence.Noise, round(x))
	}
	t.evidence.Spent, t.evidence.Road = t.elapsed().Seconds(), t.ranking.Road()
	return &plans.Bundle{Plan: p, Host: *t.o.Profile, Evidence: t.evidence}, nil
}

// service joins the PUs that won each phase.
func (t *tuning) service() (plans.ServiceConfig, error) {
	sets := [2]activeSet{t.phases[prefill].set, t.phases[decode].set}
	if len(t.def.Ranks) > 1 { // the weights are cut for these ranks, whichever of their PUs work
		return plans.NewService(t.def.Ranks, sets[prefill].PUs, sets[decode].PUs)
	}
	all := slices.Concat(sets[prefill].PUs, sets[decode].PUs)
	slices.Sort(all)
	ranks, err := thumb.MakeRanks(t.o.Profile, slices.Compact(all), 1)
	if err != nil {
		return plans.ServiceConfig{}, err
	}
	return plans.NewService(ranks, sets[prefill].PUs, sets[decode].PUs)
}

// planName makes a name that a plan may have.
func planName(model string) string {
	var out []rune
	for _, r := range model {
		if r < ' ' || r == 0x7f || r == '/' || r == '\\' {
			r = '-'
		}
		if len(out) < 100 {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return "tuned"
	}
	return string(out)
}
