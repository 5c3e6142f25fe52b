// Package ranking ranks the service configurations of a machine: it replays a trace of requests
// through the serving scheduler with predicted costs. Its input is Options, its output a Ranking.
// Anchors calibrates the predictions on the live machine.
package ranking

import (
	"fmt"
	"slices"

	"sandwich/profiles"
	"sandwich/runtime/model/cost"
	"sandwich/tuner/candidates"
	"sandwich/tuner/replay"
)

// Ranked is a configuration with the results of the replay of the trace.
type Ranked struct {
	Config *candidates.Config
	Names  []string // of all configurations of equal cost, its own first
	Cost   *candidates.Cost
	Bytes  map[int]int64 // by memory node

	// PrefillRate is in tokens/s of a prompt of 512 tokens, DecodeRate of one sequence after 128
	// positions, 0 of a pooled model.
	PrefillRate, DecodeRate float64
	Report                  *replay.Report
	Score                   float64 // by the objective; larger is better
	Goodput                 float64 // requests per second; 0 for candidates that are not shown
	estimate                float64 // seconds for all requests of the trace, one after the other
}

// Ranking lists the candidates of a machine, best first.
type Ranking struct {
	Trees     int
	Truncated bool // more trees exist than were walked
	Sections  int  // distinct sections of trees
	Configs   int  // configurations that fit; Costs is the number of distinct costs among them
	Costs     int
	Ranked    []*Ranked            // that were replayed
	Near      []*candidates.Config // one step from the best: a PU more or fewer, a rank fewer
	Assumed   []string             // figures that were not measured on this machine
	Anchors   *Calibration         // calibration of the predictions; nil: none
	Load      string               // description of the load
	Objective string
	SLO       replay.SLO
	TopK      int
	Seconds   float64
	Classes   []ClassRow    // core types, fastest first; nil if all are alike
	Placed    []cost.Placed // what each core type does under the best configuration; nil if all are alike
}

// ClassRow describes one core type of a machine. Its JSON is stable.
type ClassRow struct {
	Name  string  `json:"name"`
	PUs   string  `json:"pus"`
	Peak  float64 `json:"flops"`           // of all cores of the type, in float32
	Share float64 `json:"of_fastest_core"` // speed of one core relative to the fastest type
	Read  float64 `json:"bytes_per_second"`
}

// BytesPerNode returns bytes in the order of node ids.
func (r *Ranked) BytesPerNode(nodes []int) []int64 {
	out := make([]int64, len(nodes))
	for i, n := range nodes {
		out[i] = r.Bytes[n]
	}
	return out
}

// String summarizes the ranking.
func (r *Ranking) String() string {
	more := ""
	if r.Truncated {
		more = " of more"
	}
	return fmt.Sprintf("%d trees%s, %d sections, %d configurations, %d of distinct cost, %d replayed, in %.1f s",
		r.Trees, more, r.Sections, r.Configs, r.Costs, len(r.Ranked), r.Seconds)
}

// NodeIDs returns the memory nodes of a machine that may hold weights, in order.
func NodeIDs(p *profiles.Profile) (out []int) {
	for _, n := range p.Machine.Memory {
		if !n.Device {
			out = append(out, n.ID)
		}
	}
	slices.Sort(out)
	return out
}
