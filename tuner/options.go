package tuner

import (
	"errors"
	"fmt"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/synth"
	"sandwich/tuner/ranking"
	"sandwich/tuner/replay"
	"sandwich/tuner/search"
)

// Options configure Tune. Profile and one of File and Config are required; other fields have
// defaults.
type Options struct {
	Profile *profiles.Profile // of this machine
	File    *gguf.File        // the model; the finalists run its weights
	Config  *model.Config     // without a file: shapes to tune for, run with random weights
	Type    synth.FileType    // type of the weights of Config

	Name     string        // of the plan; "": the model's
	Origin   string        // the file, preset or config.json, for the evidence
	Threads  int           // maximum number of PUs; 0: unlimited
	TP       int           // tensor-parallel ranks; 0: choose; several ranks change the bits
	AllowTP  bool          // accept several ranks for any gain, not only from 10 % on
	ISA      string        // "": the widest
	Compute  string        // auto, f32, int8, bf16
	KV       string        // f16, f32
	Attend   string        // auto (also ""), or what attention adds up by
	SeqMax   int           // 0: 2048, at most the model's context
	BatchMax int           // 0: 16
	Budget   time.Duration // of the whole run; 0: 10 minutes
	Began    time.Time     // start of the budget; zero: now
	Effort   string        // quick, standard, full; "": what suits the budget
	Strategy string        // of the kernel search; "": sandwich
	TopK     int           // sets of PUs per phase to measure; 0: 10
	Seed     uint64

	Load      ranking.Load // load that ranks configurations; empty: a few requests of replay.Usual
	Objective string       // of the ranking; "": latency
	SLO       replay.SLO

	Wisdom  string // path of what earlier runs' kernel searches found (WisdomPath), "" for none
	Journal string // path of the journal, "" for none
	Resume  bool   // continue the existing journal
	Build   string // commit of this program, for the journal and the evidence

	Rerun int          // rounds that rerun all arms with the plan, past the budget; 0: none
	Reran func(*Rerun) // receives the result of the rerun
	// EverySet adds the plan's tables on every other set of its PUs to the rerun.
	EverySet bool

	Progress func(Progress) // called about ten times per second at most, from the tuning goroutine; may be nil
	Warn     func(error)    // receives errors that do not end the run, from the tuning goroutine; may be nil
}

// Progress is the state that a terminal line shows.
type Progress struct {
	Stage   string // loading, ranks, active PUs, kernels, finalists, rerun
	Text    string // current trial and best result so far
	Elapsed time.Duration
	Budget  time.Duration
	Trials  int
}

// String returns the progress line.
func (p Progress) String() string {
	line := fmt.Sprintf("%s of %s  %s", p.Elapsed.Round(time.Second), p.Budget.Round(time.Second), p.Stage)
	if p.Text != "" {
		line += ": " + p.Text
	}
	if p.Trials > 0 {
		line += fmt.Sprintf("  (%d trials)", p.Trials)
	}
	return line
}

// DefaultBudget is the budget when Options has none.
const DefaultBudget = 10 * time.Minute

// complete sets defaults and rejects options that cannot be tuned.
func (o *Options) complete() error {
	switch {
	case o.Profile == nil:
		return errors.New("tune needs a host profile")
	case o.File == nil && o.Config == nil:
		return errors.New("tune needs a model: a GGUF file, a config.json or a preset")
	case o.Budget < 0:
		return fmt.Errorf("the budget %s is too small; use at least a few seconds", o.Budget)
	case o.TP < 0:
		return fmt.Errorf("%d ranks: must not be negative; use 0 to choose the number", o.TP)
	case o.SeqMax < 0 || o.BatchMax < 0 || o.TopK < 0:
		return fmt.Errorf("seq-max %d, batch-max %d and top-k %d must not be negative", o.SeqMax, o.BatchMax, o.TopK)
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	if o.TopK == 0 {
		o.TopK = 10
	}
	if o.Effort == "" {
		o.Effort = effortFor(o.Budget)
	}
	if o.Strategy == "" {
		o.Strategy = search.Strategies()[0]
	}
	if search.About(o.Strategy) == "" {
		return fmt.Errorf("unknown search strategy %q; choose one of %v", o.Strategy, search.Strategies())
	}
	if _, err := search.ParseEffort(o.Effort); err != nil {
		return err
	}
	return o.checkHost()
}

// effortFor returns the effort that fits a budget.
func effortFor(budget time.Duration) string {
	switch {
	case budget < 3*time.Minute:
		return search.Quick.Name
	case budget < 30*time.Minute:
		return search.Standard.Name
	}
	return search.Full.Name
}

// checkHost rejects a profile of another machine, because measurements of this machine would be
// recorded under the other one's name.
func (o *Options) checkHost() error {
	here, err := profiles.Live()
	if err != nil {
		return err
	}
	if here.Fingerprint() != o.Profile.Fingerprint() {
		return fmt.Errorf("%w: the profile describes %s with PUs %s, this is %s with PUs %s; make one here with "+
			"`sandwich probe -o host.yaml`",
			plans.ErrForeignHost, o.Profile.Host.CPUModel, o.Profile.Allowed(), here.Host.CPUModel, here.Allowed())
	}
	return nil
}

// flags returns every option that affects the measurements; the journal compares it.
func (o *Options) flags() string {
	return fmt.Sprintf("threads=%d tp=%d isa=%s compute=%s kv=%s attention=%s seq-max=%d batch-max=%d budget=%s "+
		"effort=%s "+
		"strategy=%s top-k=%d allow-tp=%v load=%q objective=%s",
		o.Threads, o.TP, o.ISA, o.Compute, o.KV, o.Attend, o.SeqMax, o.BatchMax, o.Budget, o.Effort, o.Strategy, o.TopK,
		o.AllowTP, o.Load.Name+o.Load.Workload.Name, o.Objective)
}
