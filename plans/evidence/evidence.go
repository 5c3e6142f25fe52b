// Package evidence has the record of how a plan was found, and derives the results of its races:
// gains over the default plan with confidence intervals.
package evidence

import (
	"fmt"
	"math"
	"slices"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Evidence records how a plan was found: samples, noise, candidates and rejections. Measured
// numbers are stored here and in the host profile, not in plan.yaml, so that plans can be compared
// as text.
type Evidence struct {
	Version  int     `yaml:"version" json:"version"`
	Model    string  `yaml:"model,omitempty" json:"model,omitempty"` // file, preset or config.json
	Build    string  `yaml:"build" json:"build"`                     // commit of the program that made the plan
	Created  string  `yaml:"created" json:"created"`                 // RFC 3339, UTC
	Strategy string  `yaml:"strategy" json:"strategy"`
	Effort   string  `yaml:"effort" json:"effort"`
	Seed     uint64  `yaml:"seed" json:"seed"`
	Budget   float64 `yaml:"budget_s" json:"budget_s"`
	Spent    float64 `yaml:"spent_s" json:"spent_s"`
	Noise    float64 `yaml:"aa_noise" json:"aa_noise"` // difference of two equal arms
	Trials   int     `yaml:"trials" json:"trials"`     // kernels timed
	// rule by which a kernel search reuses a schedule for all larger M
	EarlyStop string     `yaml:"early_stop,omitempty" json:"early_stop,omitempty"`
	Searches  []Search   `yaml:"searches,omitempty" json:"searches,omitempty"`
	Kernels   []Trial    `yaml:"kernels,omitempty" json:"kernels,omitempty"`
	Finalists []Arm      `yaml:"finalists,omitempty" json:"finalists,omitempty"`
	Rejected  []Rejected `yaml:"rejected,omitempty" json:"rejected,omitempty"`
	// times of decode steps by context length, ascending
	Steps []Steps `yaml:"decode_steps,omitempty" json:"decode_steps,omitempty"`
	// how the raced configurations were found; nil if not recorded
	Trace *Trace `yaml:"search_trace,omitempty" json:"search_trace,omitempty"`
}

// Search records how one kernel table was found.
type Search struct {
	Phase    string          `json:"phase"` // prefill or decode
	PUs      string          `json:"pus"`
	Weight   plans.WeightKey `json:"weight"`
	Lengths  int             `json:"lengths"`            // number of M that were searched or copied from an equal search
	Trials   int             `json:"trials"`             // kernels timed
	Noise    float64         `json:"aa_noise"`           // median relative difference of the incumbent timed twice
	Reopened []int           `json:"reopened,omitempty"` // M at which all kernels were timed again, since the regime changed
	// first M that uses the schedule of smaller M after the early stop; 0: none
	Reused int `json:"reused_from,omitempty"`
	Cut    int `json:"cut,omitempty"`  // number of M that keep the default schedule, since the budget was spent
	Kept   int `json:"kept,omitempty"` // number of M whose winners come from an earlier run
	// duration of the search
	Seconds float64 `json:"seconds,omitempty"`
}

// searchDoc is the one-line form in evidence.yaml.
type searchDoc struct {
	Phase    string        `yaml:"phase"`
	PUs      string        `yaml:"pus"`
	Weight   plans.KeyText `yaml:"weight"`
	Lengths  int           `yaml:"lengths"`
	Trials   int           `yaml:"trials"`
	Noise    float64       `yaml:"aa_noise"`
	Reopened []int         `yaml:"reopened,omitempty"`
	Reused   int           `yaml:"reused_from,omitempty"`
	Cut      int           `yaml:"cut,omitempty"`
	Kept     int           `yaml:"kept,omitempty"`
	Seconds  float64       `yaml:"seconds,omitempty"`
}

// MarshalYAML writes a search on one line.
func (s Search) MarshalYAML() (any, error) {
	return profiles.FlowYAML(searchDoc{s.Phase, s.PUs, plans.KeyText(s.Weight), s.Lengths, s.Trials, s.Noise,
		s.Reopened,
		s.Reused, s.Cut, s.Kept, s.Seconds})
}

// UnmarshalYAML reads what MarshalYAML writes.
func (s *Search) UnmarshalYAML(unmarshal func(any) error) error {
	var d searchDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	*s = Search{d.Phase, d.PUs, plans.WeightKey(d.Weight), d.Lengths, d.Trials, d.Noise, d.Reopened, d.Reused, d.Cut,
		d.Kept, d.Seconds}
	return nil
}

// Trial is the winner of a search for one phase, weight and M.
type Trial struct {
	Phase    string          `json:"phase"` // prefill or decode
	Weight   plans.WeightKey `json:"weight"`
	M        int             `json:"m"`
	Schedule string          `json:"schedule"`
	Tried    int             `json:"tried"` // candidates timed
	Seconds  profiles.Figure `json:"seconds"`
}

// trialDoc is the one-line form in evidence.yaml.
type trialDoc struct {
	Phase    string          `yaml:"phase"`
	Weight   plans.KeyText   `yaml:"weight"`
	M        int             `yaml:"m"`
	Schedule string          `yaml:"schedule"`
	Tried    int             `yaml:"tried"`
	Seconds  profiles.Figure `yaml:"seconds"`
}

// MarshalYAML writes a trial on one line.
func (t Trial) MarshalYAML() (any, error) {
	return profiles.FlowYAML(trialDoc{t.Phase, plans.KeyText(t.Weight), t.M, t.Schedule, t.Tried, t.Seconds})
}

// UnmarshalYAML reads what MarshalYAML writes.
func (t *Trial) UnmarshalYAML(unmarshal func(any) error) error {
	var d trialDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	*t = Trial{d.Phase, plans.WeightKey(d.Weight), d.M, d.Schedule, d.Tried, d.Seconds}
	return nil
}

// Arm holds the measurements of one configuration in a race on the real runtime, interleaved with
// the other arms.
type Arm struct {
	Name    string    `yaml:"name" json:"name"` // phase and arm, such as "decode, default"; see ArmDefault
	Test    string    `yaml:"test" json:"test"` // pp512, tg64
	Unit    string    `yaml:"unit" json:"unit"` // tokens/s
	Samples []float64 `yaml:"samples,flow" json:"samples"`
	// rounds in which the samples were taken, ascending; empty: 0, 1, 2 and so on
	Rounds []int `yaml:"rounds,flow,omitempty" json:"rounds,omitempty"`
}

// at returns the sample of a round, and whether the arm has one.
func (a *Arm) at(round int) (float64, bool) {
	i := round
	if len(a.Rounds) > 0 {
		found := false
		if i, found = slices.BinarySearch(a.Rounds, round); !found {
			return 0, false
		}
	}
	if i < 0 || i >= len(a.Samples) {
		return 0, false
	}
	return a.Samples[i], true
}

// rounds returns the rounds in which the samples were taken.
func (a *Arm) rounds() []int {
	if len(a.Rounds) > 0 {
		return a.Rounds
	}
	out := make([]int, len(a.Samples))
	for i := range out {
		out[i] = i
	}
	return out
}

// MarshalYAML writes an arm on one line.
func (a Arm) MarshalYAML() (any, error) {
	type plain Arm
	return profiles.FlowYAML(plain(a))
}

// Rejected is a candidate that was not chosen, with the reason.
type Rejected struct {
	Candidate string `yaml:"candidate" json:"candidate"`
	Reason    string `yaml:"reason" json:"reason"`
}

// Check validates version, date, samples and totals.
func (e *Evidence) Check() error {
	if e.Version != plans.Version {
		return fmt.Errorf("evidence has version %d in a bundle of version %d", e.Version, plans.Version)
	}
	if t, err := time.Parse(time.RFC3339, e.Created); err != nil || t.Location() != time.UTC {
		return fmt.Errorf("evidence was created at %.40q; the date must be UTC as in 2026-01-31T12:00:00Z", e.Created)
	}
	for _, t := range e.Kernels {
		if err := t.Seconds.Check("trial of " + t.Weight.String()); err != nil {
			return err
		}
	}
	for _, a := range e.Finalists {
		if n := len(a.Rounds); n > 0 && (n != len(a.Samples) || !ascending(a.Rounds)) {
			return fmt.Errorf("arm %.40q has %d samples and %d round numbers; each sample needs one, in "+
				"ascending order", a.Name, len(a.Samples), n)
		}
		for _, v := range a.Samples {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("arm %.40q has the sample %v", a.Name, v)
			}
		}
	}
	for _, s := range e.Searches {
		if !(s.Noise >= 0) || math.IsInf(s.Noise, 0) || !(s.Seconds >= 0) || math.IsInf(s.Seconds, 0) {
			return fmt.Errorf("the search of %s has the noise %v and the duration %v s; both must be finite and at "+
				"least 0", s.Weight, s.Noise, s.Seconds)
		}
	}
	for _, v := range []float64{e.Budget, e.Spent, e.Noise, float64(e.Trials)} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("evidence has a budget, time, noise or number of trials of %v; it must be finite and "+
				"at least 0", v)
		}
	}
	if err := checkSteps(e.Steps); err != nil {
		return err
	}
	return e.Trace.check()
}

// ascending reports whether round numbers are distinct, in ascending order and not negative.
func ascending(rounds []int) bool {
	last := -1
	for _, r := range rounds {
		if r <= last {
			return false
		}
		last = r
	}
	return true
}

// maxTraceCandidates bounds the candidates of a search trace.
const maxTraceCandidates = 100

// Trace records how the raced configurations were found: topology trees, sections of the
// trees, configurations of the sections, and their ranking by simulation (Sandwich, sections 5.2
// and 5.3). The tuner writes it, `plan explain` prints it.
type Trace struct {
	Trees          int      `yaml:"trees" json:"trees"`
	Truncated      bool     `yaml:"truncated,omitempty" json:"truncated,omitempty"` // more trees exist
	Sections       int      `yaml:"sections" json:"sections"`
	Configurations int      `yaml:"configurations" json:"configurations"`
	DistinctCosts  int      `yaml:"distinct_costs" json:"distinct_costs"`
	Simulated      int      `yaml:"simulated" json:"simulated"` // by replay of the load
	Seconds        float64  `yaml:"seconds" json:"seconds"`
	Load           string   `yaml:"load" json:"load"`
	Objective      string   `yaml:"objective" json:"objective"`
	Assumed        []string `yaml:"assumed,omitempty" json:"assumed,omitempty"`
	// measurements behind the predictions, and prediction errors on other products
	Measured   []string         `yaml:"measured,omitempty" json:"measured,omitempty"`
	Errors     *TraceErrors     `yaml:"errors,omitempty" json:"errors,omitempty"`
	Candidates []TraceCandidate `yaml:"candidates" json:"candidates"` // best first
}

// TraceErrors holds relative errors of predictions: 0.1 for 10 %.
type TraceErrors struct {
	Products int     `yaml:"products" json:"products"`
	Median   float64 `yaml:"median" json:"median"`
	P90      float64 `yaml:"p90" json:"p90"`
}

// String describes the errors in one sentence.
func (e *TraceErrors) String() string {
	return fmt.Sprintf("predictions were off by %.0f %% at the median and %.0f %% at the 90th percentile on %d "+
		"measured products that were not anchors", 100*e.Median, 100*e.P90, e.Products)
}

// TraceCandidate is a service configuration with its simulated rates.
type TraceCandidate struct {
	Name        string          `yaml:"name" json:"name"`
	TP          int             `yaml:"tp" json:"tp"`
	PrefillPUs  topotree.CPUSet `yaml:"prefill_pus" json:"prefill_pus"`
	DecodePUs   topotree.CPUSet `yaml:"decode_pus" json:"decode_pus"`
	PrefillRate float64         `yaml:"prefill_tokens_per_s" json:"prefill_tokens_per_second"` // prompt of 512 tokens
	DecodeRate  float64         `yaml:"decode_tokens_per_s" json:"decode_tokens_per_second"`   // one sequence at 128 positions
	Latency     float64         `yaml:"latency_s" json:"latency_s"`                            // mean over the load's requests
	Bytes       int64           `yaml:"bytes" json:"bytes"`                                    // of all nodes together
}

// check validates counts and figures.
func (r *Trace) check() error {
	if r == nil {
		return nil
	}
	for _, n := range []int{r.Trees, r.Sections, r.Configurations, r.DistinctCosts, r.Simulated} {
		if n < 0 {
			return fmt.Errorf("the search trace has the count %d; counts are not negative", n)
		}
	}
	if len(r.Candidates) > maxTraceCandidates {
		return fmt.Errorf("the search trace has %d candidates, above %d", len(r.Candidates), maxTraceCandidates)
	}
	figures := []float64{r.Seconds}
	if r.Errors != nil {
		figures = append(figures, r.Errors.Median, r.Errors.P90, float64(r.Errors.Products))
	}
	for _, c := range r.Candidates {
		figures = append(figures, c.PrefillRate, c.DecodeRate, c.Latency, float64(c.Bytes))
	}
	for _, v := range figures {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("the search trace has the figure %v; figures are finite and not negative", v)
		}
	}
	return nil
}

// Keep adds a candidate unless the trace is full.
func (r *Trace) Keep(c TraceCandidate) {
	if len(r.Candidates) < maxTraceCandidates {
		r.Candidates = append(r.Candidates, c)
	}
}
