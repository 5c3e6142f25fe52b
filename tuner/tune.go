package tuner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/phase"
	"sandwich/tuner/search"
)

// Parts of the budget at which the stages end. What starting takes counts; what a stage leaves
// over, the next one has.
const (
	ranksEnd     = 0.1
	kernelsEnd   = 0.80
	finalistsEnd = 0.97
)

// errNoTime ends what the budget has no time for: the plan stays as it is by then.
var errNoTime = errors.New("the budget is over")

// Tune makes the best plan it can find for the model on this machine within the budget. Partitions
// of the model that the simulated ranking puts near the best run under the untuned default; in each
// that is not plainly slower, sets of active PUs are measured and kernel tables searched for the
// best ones; whole configurations of all of these then race with the default, which wins wherever
// it is not beaten. When ctx ends, the error is its cause and the journal keeps what was timed.
func Tune(ctx context.Context, o Options) (*plans.Bundle, error) {
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

// work is everything that is timed.
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
		if gone := (*absent)(nil); errors.As(err, &gone) {
			t.reject(p.name(), gone.why)
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

// tuning is one Tune under way.
type tuning struct {
	ctx     context.Context
	o       Options
	ranking *Ranking // of all service configurations, simulated
	effort  search.Effort
	shape   plans.ModelShape
	random  *gguf.File // weights where there is no file; part of the model where part says so
	part    string
	journal *journal
	wisdom  *wisdom
	rec     *recorder

	home     *partition // of the default plan, which is open throughout
	other    *partition // that is open besides; nil: none
	won      *partition // whose winners the plan gets; nil: that of the default
	raced    *raceArms  // the last race; nil: whole configurations were not compared
	again    *Rerun     // its arms once more; nil: nobody asked
	evidence plans.Evidence
	noise    []float64 // A/A differences: of whole forwards, or of kernels where there is no rig
	said     time.Time
}

const (
	prefill = int(phase.Prefill)
	decode  = int(phase.Decode)
)

var phaseNames = [phase.Count]string{phase.Prefill.String(), phase.Decode.String()}

// served are the phases that somebody runs: a pooled model reads texts and decodes nothing.
func (t *tuning) served() []int {
	if t.shape.Pooled() {
		return []int{prefill}
	}
	return []int{prefill, decode}
}

// describe fills in the shape of the model.
func (t *tuning) describe() (err error) {
	if t.effort, err = search.ParseEffort(t.o.Effort); err != nil {
		return err
	}
	if t.shape, err = shapeOf(t.o); err != nil {
		return err
	}
	t.evidence = plans.Evidence{Model: t.o.Origin, Build: t.o.Build,
		Created: t.o.Began.UTC().Format(time.RFC3339), Strategy: t.o.Strategy,
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

// openWisdom reads the kernel trials of earlier runs. Without them the search takes longer, so that
// a file that cannot be used is a warning.
func (t *tuning) openWisdom() {
	if t.o.Wisdom == "" {
		return
	}
	var err error
	if t.wisdom, err = openWisdom(t.o.Wisdom); err != nil {
		t.warn(err)
	}
}

// keepTrials adds what a search found to the kernel trials for later runs. After a failure it adds
// no more.
func (t *tuning) keepTrials(problem string, r *search.Result, known []search.Anchor, share float64) {
	if err := t.wisdom.keep(problem, r, known, t.effort, share); err != nil {
		t.warn(err)
		_ = t.wisdom.close()
		t.wisdom = nil
	}
}

// warn reports what does not end the run.
func (t *tuning) warn(err error) {
	if t.o.Warn != nil {
		t.o.Warn(err)
	}
}

// elapsed is the time that counts against the budget: that of this run, and what the trials took
// that a resumed journal answered.
func (t *tuning) elapsed() time.Duration { return time.Since(t.o.Began) + t.rec.replayed }

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

// weights are the model's, or random ones of its shapes.
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

// open brings a partition into memory; besides that of the default plan one is there at a time.
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

// shut gives back what is open.
func (t *tuning) shut() {
	for _, p := range []*partition{t.other, t.home} {
		if p != nil {
			p.shut()
		}
	}
}

func (t *tuning) close() {
	if t.journal != nil {
		t.journal.close()
	}
	t.wisdom.close()
}

// bundle writes the winners down.
func (t *tuning) bundle() (*plans.Bundle, error) {
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
		t.evidence.Noise = max(t.evidence.Noise, round(x))
	}
	t.evidence.Spent, t.evidence.Trace = t.elapsed().Seconds(), t.ranking.Trace()
	return &plans.Bundle{Plan: p, Host: *t.o.Profile, Evidence: t.evidence}, nil
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
