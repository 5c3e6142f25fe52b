package tuner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandwich/internal/num"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/phase"
	"sandwich/tuner/race"
	"sandwich/tuner/ranking"
	"sandwich/tuner/search"
	"sandwich/tuner/trials"
)

// Parts of the budget at which the stages end. Startup counts toward the first stage; a stage may
// use the time that an earlier stage left.
const (
	ranksEnd     = 0.1
	kernelsEnd   = 0.80
	finalistsEnd = 0.97
)

// errNoTime stops a stage when the budget is over. The plan keeps the results so far.
var errNoTime = errors.New("the budget is over")

// Tune returns the best plan for the model on this machine that it finds within the budget. It
// first measures the partitions of the model that rank near the best in the simulation, under the
// untuned default plan. For each partition that is not clearly slower it measures sets of active
// PUs and searches kernel tables for the best sets. Finally, whole configurations race with the
// default plan, which wins unless it is beaten. If ctx ends, Tune returns its cause, and the
// journal keeps the measurements.
func Tune(ctx context.Context, o Options) (*bundle.Bundle, error) {
	if o.Began.IsZero() {
		o.Began = time.Now()
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	ranking, err := o.ranking(ctx)
	if err != nil {
		return nil, err
	}
	t := &tuning{ctx: ctx, o: o, ranking: ranking}
	defer t.close()
	if err := t.describe(); err != nil {
		return nil, err
	}
	home, err := t.newPartition(nil)
	if err != nil {
		return nil, err
	}
	if err := t.openJournal(); err != nil {
		return nil, err
	}
	t.openWisdom()
	if err := t.work(home); err != nil && !errors.Is(err, errNoTime) {
		return nil, err
	}
	if t.again != nil && o.Reran != nil {
		o.Reran(t.again)
	}
	return t.bundle()
}

// work runs all measured stages.
func (t *tuning) work(home *partition) error {
	defer t.shut()
	if t.o.EverySet {
		if err := everySetFits(home.def.PUs()); err != nil {
			return err
		}
	}
	list, err := t.raceRanks(home)
	if err != nil {
		return err
	}
	began := float64(t.elapsed()) / float64(t.o.Budget)
	var ready []*partition
	for i, p := range list {
		p.ends(began+(kernelsEnd-began)*float64(i)/float64(len(list)),
			began+(kernelsEnd-began)*float64(i+1)/float64(len(list)))
		err := t.open(p)
		if gone := (*race.Absent)(nil); errors.As(err, &gone) {
			t.reject(p.name(), gone.Why)
			continue
		}
		if err == nil {
			err = p.search()
		}
		if err != nil {
			return err
		}
		ready = append(ready, p)
	}
	err = t.decide(ready)
	if err == nil && t.o.Rerun > 0 {
		t.again, err = t.rerun()
	}
	return err
}

// tuning is the state of one call of Tune.
type tuning struct {
	ctx     context.Context
	o       Options
	ranking *ranking.Ranking // simulated ranking of all service configurations
	effort  search.Effort
	shape   plans.ModelShape
	random  *gguf.File // weights without a file; a part of the model if part is set
	part    string
	journal *trials.Journal
	wisdom  *trials.Wisdom
	rec     *trials.Recorder

	home     *partition // partition of the default plan; always open
	other    *partition // the second open partition, or nil
	won      *partition // partition of the winners; nil: the default plan's
	raced    *raceArms  // the last race; nil if whole configurations were not compared
	again    *Rerun     // rerun of its arms; nil if not requested
	evidence evidence.Evidence
	noise    []float64 // A/A differences of whole forwards, or of kernels without a rig
	said     time.Time
}

const (
	prefill = int(phase.Prefill)
	decode  = int(phase.Decode)
)

var phaseNames = [phase.Count]string{phase.Prefill.String(), phase.Decode.String()}

// served returns the phases that run. A pooled model has no decode phase.
func (t *tuning) served() []int {
	if t.shape.Pooled() {
		return []int{prefill}
	}
	return []int{prefill, decode}
}

// describe sets the model shape, the effort and the evidence header.
func (t *tuning) describe() (err error) {
	if t.effort, err = search.ParseEffort(t.o.Effort); err != nil {
		return err
	}
	if t.shape, err = shapeOf(t.o); err != nil {
		return err
	}
	t.evidence = evidence.Evidence{Model: t.o.Origin, Build: t.o.Build,
		Created: t.o.Began.UTC().Format(time.RFC3339), Strategy: t.o.Strategy,
		Effort: t.o.Effort, Seed: t.o.Seed, Budget: t.o.Budget.Seconds()}
	if !search.PerShape(t.o.Strategy) {
		t.evidence.EarlyStop = search.ReuseCriterion()
	}
	return nil
}

// shapeOf returns the shape of the model to tune for.
func shapeOf(o Options) (plans.ModelShape, error) {
	if o.File != nil {
		return modelshape.Of(o.File)
	}
	return synth.Shape(*o.Config, o.Type)
}

// openJournal creates the journal or continues that of an earlier run.
func (t *tuning) openJournal() (err error) {
	if t.o.Journal != "" {
		key := trials.Key{Fingerprint: t.o.Profile.Fingerprint(), Build: t.o.Build, Model: t.shape.Digest(),
			Seed: t.o.Seed, Flags: t.o.flags()}
		if t.journal, err = trials.OpenJournal(t.o.Journal, key, t.o.Resume); err != nil {
			return err
		}
	}
	t.rec = trials.NewRecorder(t.journal)
	return nil
}

// openWisdom reads the kernel trials of earlier runs. An unusable file causes only a warning,
// because the search merely takes longer without it.
func (t *tuning) openWisdom() {
	if t.o.Wisdom == "" {
		return
	}
	var err error
	if t.wisdom, err = trials.OpenWisdom(t.o.Wisdom); err != nil {
		t.warn(err)
	}
}

// keepTrials stores the result of a search for later runs. After a failure it stores nothing more.
func (t *tuning) keepTrials(problem string, r *search.Result, known []search.Anchor, share float64) {
	if err := t.wisdom.Keep(problem, r, known, t.effort, share); err != nil {
		t.warn(err)
		_ = t.wisdom.Close()
		t.wisdom = nil
	}
}

// warn reports an error that does not end the run.
func (t *tuning) warn(err error) {
	if t.o.Warn != nil {
		t.o.Warn(err)
	}
}

// elapsed returns the time that counts against the budget: that of this run and that of the trials
// answered from a resumed journal.
func (t *tuning) elapsed() time.Duration { return time.Since(t.o.Began) + t.rec.Replayed() }

// until returns the time left until a part of the budget is used up.
func (t *tuning) until(part float64) time.Duration {
	return time.Duration(part*float64(t.o.Budget)) - t.elapsed()
}

// say reports progress at most ten times per second, or always if must is set.
func (t *tuning) say(stage, text string, must bool) {
	if t.o.Progress == nil || !must && time.Since(t.said) < 100*time.Millisecond {
		return
	}
	t.said = time.Now()
	t.o.Progress(Progress{Stage: stage, Text: text, Elapsed: t.elapsed(), Budget: t.o.Budget,
		Trials: t.evidence.Trials})
}

// maxRejected bounds the rejected candidates in the evidence.
const maxRejected = 200

func (t *tuning) reject(candidate, reason string) {
	if len(t.evidence.Rejected) < maxRejected {
		t.evidence.Rejected = append(t.evidence.Rejected, evidence.Rejected{Candidate: candidate, Reason: reason})
	}
}

// weights returns the model's weights, or random weights of its shapes.
func (t *tuning) weights(ctx context.Context, most int64) (*gguf.File, error) {
	if t.o.File != nil {
		return t.o.File, nil
	}
	if t.random == nil {
		var err error
		if t.random, t.part, err = randomModel(ctx, *t.o.Config, t.o.Type, most, t.o.Seed); err != nil {
			return nil, err
		}
	}
	return t.random, nil
}

// open loads a partition. It keeps the default plan's partition open and closes any
// other.
func (t *tuning) open(p *partition) error {
	if p.opened() || p.failed != nil {
		return p.failed
	}
	if p != t.home {
		if t.other != nil {
			t.other.shut()
		}
		t.other = p
	}
	if err := p.ready(); err != nil {
		p.shut()
		p.failed = err
		return err
	}
	return nil
}

// shut closes the open partitions.
func (t *tuning) shut() {
	for _, p := range []*partition{t.other, t.home} {
		if p != nil {
			p.shut()
		}
	}
}

func (t *tuning) close() {
	if t.journal != nil {
		t.journal.Close()
	}
	t.wisdom.Close()
}

// bundle returns the plan of the winners with its evidence.
func (t *tuning) bundle() (*bundle.Bundle, error) {
	won := t.winner()
	if t.shape.Pooled() {
		won.leaveDecode()
	}
	p := *won.def
	t.evidence.Version = p.Version
	p.Name = t.o.Name
	if p.Name == "" {
		p.Name = planName(t.shape.Name)
	}
	p.Tuned = won.phases[prefill].measured || won.phases[decode].measured
	p.Prefill, p.Decode = won.phases[prefill].winner, won.phases[decode].winner
	s, err := won.service()
	if err != nil {
		return nil, fmt.Errorf("the tuned plan is not valid: %w", err)
	}
	p.Use(s)
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("the tuned plan is not valid: %w", err)
	}
	for _, x := range t.noise {
		t.evidence.Noise = max(t.evidence.Noise, num.Significant(x))
	}
	t.evidence.Spent, t.evidence.Trace = t.elapsed().Seconds(), t.ranking.Trace()
	return &bundle.Bundle{Plan: p, Host: *t.o.Profile, Evidence: t.evidence}, nil
}

// planName returns a valid plan name for a model.
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
