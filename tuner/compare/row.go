package compare

import "sandwich/plans"

// Row is the result of one strategy. All strategies are timed interleaved at the held-out M.
type Row struct {
	Strategy     string  `json:"strategy"`
	Sigma        int     `json:"sigma,omitempty"`
	GFLOPS       float64 `json:"gflops"`                  // geometric mean over the held-out M
	Mean         float64 `json:"mean_gflops"`             // arithmetic mean over them
	OfBest       float64 `json:"of_best"`                 // GFLOPS relative to the best row
	OfExhaustive float64 `json:"of_exhaustive,omitempty"` // Mean relative to the row exhaustive
	Seconds      float64 `json:"seconds"`                 // of the search
	// extrapolated to every M, for strategies that search each M separately
	AllM   float64 `json:"seconds_all_m,omitempty"`
	Trials int     `json:"trials"`
	Trial  float64 `json:"trial_seconds,omitempty"` // median
	Rules  int     `json:"rules"`
	// Held-out M at which the time ended before the grid was complete.
	Unfinished []int       `json:"unfinished,omitempty"`
	Held       []HeldPoint `json:"held_out"`
	rules      []plans.Rule
}

// HeldPoint is the speed of a table at one held-out M.
type HeldPoint struct {
	M      int     `json:"m"`
	GFLOPS float64 `json:"gflops"`
}
