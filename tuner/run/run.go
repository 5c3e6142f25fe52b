// Package run has what all stages of one tuning run share: the clock of its budget, the trials of
// its journal, progress reports and the list of rejected candidates. A Run is used by one
// goroutine.
package run

import (
	"errors"
	"fmt"
	"time"

	"sandwich/plans/evidence"
	"sandwich/tuner/trials"
)

// Parts of the budget at which the stages end. Startup counts toward the first stage; a stage may
// use the time that an earlier stage left.
const (
	RanksEnd  = 0.1
	TablesEnd = 0.80
	FinalsEnd = 0.94
	StepsEnd  = 0.97
)

// ErrNoTime stops a stage when the budget is over. The plan keeps the results so far.
var ErrNoTime = errors.New("the budget is over")

// Options configure a run.
type Options struct {
	Budget  time.Duration    // of the whole run; 0: 10 minutes
	Began   time.Time        // start of the budget; zero: now
	Now     func() time.Time // clock of the budget; nil: time.Now
	Seed    uint64
	Journal string // path of the journal, "" for none
	Resume  bool   // continue the existing journal
	Build   string // commit of this program, for the journal and the evidence

	Progress func(Progress) // called about ten times per second at most, from the tuning goroutine; may be nil
	Warn     func(error)    // receives errors that do not end the run, from the tuning goroutine; may be nil
}

// Progress is the state that a terminal line shows.
type Progress struct {
	Stage   string // loading, ranks, active PUs, kernels, finalists, decode steps, rerun
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

// Run is the state of one tuning run that its stages share.
type Run struct {
	Options
	Recorder *trials.Recorder
	Trials   int                 // kernel trials so far
	Rejected []evidence.Rejected // candidates that a stage left out, with the reasons
	said     time.Time
	journal  *trials.Journal
}

// New returns a run without a journal.
func New(o Options) *Run {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Began.IsZero() {
		o.Began = o.Now()
	}
	return &Run{Options: o, Recorder: trials.NewRecorder(nil, o.Now)}
}

// Open creates the journal or continues that of an earlier run. The key identifies the runs that
// may continue each other. Without a path it does nothing.
func (r *Run) Open(key trials.Key) (err error) {
	if r.Journal == "" {
		return nil
	}
	if r.journal, err = trials.OpenJournal(r.Journal, key, r.Resume); err != nil {
		return err
	}
	r.Recorder = trials.NewRecorder(r.journal, r.Now)
	return nil
}

// Close closes the journal.
func (r *Run) Close() {
	if r.journal != nil {
		_ = r.journal.Close() // every line is written; only the last sync may be lost
	}
}

// Elapsed returns the time that counts against the budget: that of this run and that of the trials
// answered from a resumed journal.
func (r *Run) Elapsed() time.Duration { return r.Now().Sub(r.Began) + r.Recorder.Replayed() }

// Until returns the time left until a part of the budget is used up.
func (r *Run) Until(part float64) time.Duration {
	return time.Duration(part*float64(r.Budget)) - r.Elapsed()
}

// Say reports progress at most ten times per second, or always if must is set.
func (r *Run) Say(stage, text string, must bool) {
	if r.Progress == nil || !must && r.Now().Sub(r.said) < 100*time.Millisecond {
		return
	}
	r.said = r.Now()
	r.Progress(Progress{Stage: stage, Text: text, Elapsed: r.Elapsed(), Budget: r.Budget, Trials: r.Trials})
}

// maxRejected bounds the rejected candidates.
const maxRejected = 200

// Reject records why a candidate is left out.
func (r *Run) Reject(candidate, reason string) {
	if len(r.Rejected) < maxRejected {
		r.Rejected = append(r.Rejected, evidence.Rejected{Candidate: candidate, Reason: reason})
	}
}

// Window is a part of the budget for one partition: first its sets of PUs are measured, then its
// kernel tables are searched.
type Window struct{ From, SetsEnd, TablesEnd float64 }

// NewWindow returns the window between two parts of the budget.
func NewWindow(from, to float64) Window {
	const sets = 0.2
	return Window{From: from, SetsEnd: from + sets*(to-from), TablesEnd: to}
}
