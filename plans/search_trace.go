package plans

import (
	"fmt"
	"math"
)

// maxTraceCandidates bounds the candidates of a search trace.
const maxTraceCandidates = 100

// SearchTrace records how the raced configurations were found: topology trees, sections of the
// trees, configurations of the sections, and their ranking by simulation (Sandwich, sections 5.2
// and 5.3). The tuner writes it, `plan explain` prints it.
type SearchTrace struct {
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
	Name        string  `yaml:"name" json:"name"`
	TP          int     `yaml:"tp" json:"tp"`
	PrefillPUs  PUSet   `yaml:"prefill_pus" json:"prefill_pus"`
	DecodePUs   PUSet   `yaml:"decode_pus" json:"decode_pus"`
	PrefillRate float64 `yaml:"prefill_tokens_per_s" json:"prefill_tokens_per_second"` // prompt of 512 tokens
	DecodeRate  float64 `yaml:"decode_tokens_per_s" json:"decode_tokens_per_second"`   // one sequence at 128 positions
	Latency     float64 `yaml:"latency_s" json:"latency_s"`                            // mean over the load's requests
	Bytes       int64   `yaml:"bytes" json:"bytes"`                                    // of all nodes together
}

// check validates counts and figures.
func (r *SearchTrace) check() error {
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
func (r *SearchTrace) Keep(c TraceCandidate) {
	if len(r.Candidates) < maxTraceCandidates {
		r.Candidates = append(r.Candidates, c)
	}
}
