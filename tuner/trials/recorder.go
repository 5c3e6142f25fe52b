package trials

import (
	"fmt"
	"time"

	"sandwich/tuner/search"
)

// Recorder is a search.Timer that answers trials from the journal and records those that it times.
type Recorder struct {
	timer    search.Timer
	journal  *Journal // nil: no journal
	now      func() time.Time
	set      string // the active PUs, part of the name of a trial
	asked    map[string]int
	replayed time.Duration // cost of the trials answered from the journal: time of the earlier run
	hits     int
}

// NewRecorder returns a recorder that measures the cost of trials by the clock now. j may be nil.
func NewRecorder(j *Journal, now func() time.Time) *Recorder {
	return &Recorder{journal: j, now: now, asked: map[string]int{}}
}

// Use sets the timer of the kernel trials that follow.
func (r *Recorder) Use(t search.Timer) { r.timer = t }

// On names the PUs of the kernel trials that follow, a part of the name of each trial.
func (r *Recorder) On(set string) { r.set = set }

// Replayed returns the time of the trials that were answered from the journal.
func (r *Recorder) Replayed() time.Duration { return r.replayed }

// Hits returns the number of trials that were answered from the journal.
func (r *Recorder) Hits() int { return r.hits }

// trialName returns everything that determines what a trial measures.
func (r *Recorder) trialName(t search.Trial) string {
	return fmt.Sprintf("pus %s %s %s m %d n %d %s", r.set, t.Key, t.Compute, t.M, t.Columns, t.Schedule)
}

// Time implements search.Timer.
func (r *Recorder) Time(t search.Trial) (search.Sample, error) {
	if r.journal == nil {
		return r.timer.Time(t)
	}
	s, _, err := r.once(r.trialName(t), func() (search.Sample, error) { return r.timer.Time(t) })
	return s, err
}

// once returns a trial that an earlier run finished from the journal; otherwise it runs and records
// the trial. It adds the cost of the trial in either run.
func (r *Recorder) once(name string, run func() (search.Sample, error)) (s search.Sample, cost float64, err error) {
	nth := r.asked[name]
	r.asked[name]++
	if r.journal != nil {
		for _, l := range r.journal.finished[name] {
			if l.Nth == nth {
				r.replayed += time.Duration(l.Cost * float64(time.Second))
				r.hits++
				return search.Sample{Seconds: l.Seconds, Stopped: l.Stopped}, l.Cost, nil
			}
		}
	}
	began := r.now()
	if s, err = run(); err != nil {
		return s, 0, err
	}
	cost = r.now().Sub(began).Seconds()
	if r.journal != nil {
		err = r.journal.write(line{Trial: name, Nth: nth, Seconds: s.Seconds, Stopped: s.Stopped, Cost: cost})
	}
	return s, cost, err
}

// Forward returns the seconds of one forward and the cost of its sample in seconds, from the
// journal or by a call of run.
func (r *Recorder) Forward(name string, run func() (float64, error)) (seconds, cost float64, err error) {
	s, cost, err := r.once(name, func() (search.Sample, error) {
		seconds, err := run()
		return search.Sample{Seconds: []float64{seconds}}, err
	})
	if err != nil {
		return 0, 0, err
	}
	return s.Seconds[0], cost, nil
}
