package plans

import (
	"fmt"
	"math"
)

// mostOnRoad bounds the candidates that a road keeps: those that a ranking shows.
const mostOnRoad = 100

// Road is how the configurations that were raced came about: trees of the machine, sections of
// these, configurations of sections, and their ranking by simulation (Sandwich 5.2, 5.3). The tuner
// writes it, `plan explain` tells it.
type Road struct {
	Trees          int      `yaml:"trees" json:"trees"`
	Truncated      bool     `yaml:"truncated,omitempty" json:"truncated,omitempty"` // there are more trees
	Sections       int      `yaml:"sections" json:"sections"`
	Configurations int      `yaml:"configurations" json:"configurations"`
	UnlikeCosts    int      `yaml:"unlike_costs" json:"unlike_costs"`
	Simulated      int      `yaml:"simulated" json:"simulated"` // by replay of the load
	Seconds        float64  `yaml:"seconds" json:"seconds"`
	Load           string   `yaml:"load" json:"load"`
	Objective      string   `yaml:"objective" json:"objective"`
	Assumed        []string `yaml:"assumed,omitempty" json:"assumed,omitempty"`
	// what was measured for the predictions, and how wrong they were on products that were not
	Measured   []string        `yaml:"measured,omitempty" json:"measured,omitempty"`
	Errors     *RoadErrors     `yaml:"errors,omitempty" json:"errors,omitempty"`
	Candidates []RoadCandidate `yaml:"candidates" json:"candidates"` // best first
}

// RoadErrors are relative errors of predictions: 0.1 for 10 %.
type RoadErrors struct {
	Products int     `yaml:"products" json:"products"`
	Median   float64 `yaml:"median" json:"median"`
	P90      float64 `yaml:"p90" json:"p90"`
}

// RoadCandidate is a service configuration with what the simulation said of it.
type RoadCandidate struct {
	Name        string  `yaml:"name" json:"name"`
	TP          int     `yaml:"tp" json:"tp"`
	PrefillPUs  PUSet   `yaml:"prefill_pus" json:"prefill_pus"`
	DecodePUs   PUSet   `yaml:"decode_pus" json:"decode_pus"`
	PrefillRate float64 `yaml:"prefill_tokens_per_s" json:"prefill_tokens_per_second"` // prompt of 512 tokens
	DecodeRate  float64 `yaml:"decode_tokens_per_s" json:"decode_tokens_per_second"`   // one sequence at 128 positions
	Latency     float64 `yaml:"latency_s" json:"latency_s"`                            // mean over the load's requests
	Bytes       int64   `yaml:"bytes" json:"bytes"`                                    // of all nodes together
}

// check wants counts and figures that are some.
func (r *Road) check() error {
	if r == nil {
		return nil
	}
	for _, n := range []int{r.Trees, r.Sections, r.Configurations, r.UnlikeCosts, r.Simulated} {
		if n < 0 {
			return fmt.Errorf("the road to the plan counts %d of something", n)
		}
	}
	if len(r.Candidates) > mostOnRoad {
		return fmt.Errorf("the road to the plan has %d candidates, and %d at most are kept", len(r.Candidates),
			mostOnRoad)
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
			return fmt.Errorf("the road to the plan has the figure %v", v)
		}
	}
	return nil
}

// Keep adds a candidate unless there are enough.
func (r *Road) Keep(c RoadCandidate) {
	if len(r.Candidates) < mostOnRoad {
		r.Candidates = append(r.Candidates, c)
	}
}
