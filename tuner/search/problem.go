package search

import (
	"fmt"
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/roofline"
)

// Problem is the search for the schedules of one weight shape in one phase, for every M.
type Problem struct {
	Phase   string // prefill or decode, for progress and evidence
	Key     plans.WeightKey
	Compute microkernel.Compute // fixed before the tables are searched (rule 6)
	Threads int                 // active PUs of the phase
	Anchors []int               // the M to search, ascending; see AnchorLengths
	Kernels []MicroKernel       // all candidates; see Candidates
	Ways    [][2]int            // polymerization schemes; see Polymerizations
	// Ceiling is that of the active PUs. Without bandwidth or targets, events have no fraction of
	// the ceiling, and no regime is crossed.
	Ceiling   roofline.Ceiling
	CacheL1   int // bytes available to one thread
	CacheL2   int
	Incumbent func(m int) plans.Schedule   // untuned schedule; always a candidate
	Hints     func(m int) []plans.Schedule // winners of other searches that should be tried; may be nil
	// MaxColumns returns the maximum number of columns of a trial of m rows, for a Timer with
	// bounded operands; nil: all.
	MaxColumns func(m int) int
	Known      []Anchor // results of an equal problem for some anchors; not searched again
}

// Options configure the effort of a search.
type Options struct {
	Strategy string // see Strategies; "" is sandwich
	Effort   Effort
	Sigma    int                  // sliding window: first shapes that try all micro-kernels, and winners kept; 0: 16
	Seed     uint64               // of all random choices
	Alone    bool                 // for comparisons: the incumbent is timed but cannot win
	Budget   time.Duration        // of this problem
	Clock    func() time.Duration // time since a fixed moment; nil: the wall clock
	Progress func(Event)          // called from the searching goroutine; may be nil
}

// Effort is the number of candidates tried at an anchor and of the calls of each.
type Effort struct {
	Name     string
	Tiles    int // register tiles screened at an anchor where all micro-kernels compete; 0: all
	Variants int // number of best tiles whose unrollings and forms are all screened
	Starts   int // micro-kernels that enter fast start
	Fine     int // fine steps of a polymerization scheme
	Reps     int // calls of a final decision
	Octave   int // anchors per doubling of M beyond 16
}

// Efforts by name.
var (
	Quick    = Effort{Name: "quick", Tiles: 8, Variants: 1, Starts: 1, Fine: 2, Reps: 3, Octave: 1}
	Standard = Effort{Name: "standard", Tiles: 0, Variants: 2, Starts: 2, Fine: 6, Reps: 5, Octave: 2}
	Full     = Effort{Name: "full", Tiles: 0, Variants: 6, Starts: 4, Fine: 16, Reps: 7, Octave: 4}
)

// ParseEffort returns the effort of a name.
func ParseEffort(name string) (Effort, error) {
	for _, e := range []Effort{Quick, Standard, Full} {
		if e.Name == name {
			return e, nil
		}
	}
	return Effort{}, fmt.Errorf("unknown effort %q; choose quick, standard or full", name)
}

// AnchorLengths returns the M that are searched between 1 and limit: small ones densely, because
// decode batches and kernels differ most there, then octave per doubling (1, 2 or 4). It always
// includes limit.
func AnchorLengths(limit, octave int) []int {
	var out []int
	for m := 1; m < limit; {
		out = append(out, m)
		unit := 1
		for 2*unit <= m {
			unit *= 2 // the power of two at or below m
		}
		step := max(1, unit/max(1, octave))
		if octave > 1 && m < 16 {
			step = max(1, unit/4)
		}
		m += step
	}
	return append(out, limit)
}

// Polymerizations lists the schemes that lay slices on threads: handed out dynamically (0, 0), and
// every static m ways x n ways with product threads.
func Polymerizations(threads int) [][2]int {
	out := [][2]int{{0, 0}}
	for w := 1; w <= threads; w++ {
		if threads%w == 0 {
			out = append(out, [2]int{w, threads / w})
		}
	}
	return out
}

// Anchor is the result at one M.
type Anchor struct {
	M        int
	Schedule plans.Schedule
	// Calls of the winner, scaled to the whole shape; empty if it was never timed and the incumbent
	// stays.
	Seconds []float64
	Stage   string  // stage that found it
	Tried   int     // distinct schedules timed
	Rival   float64 // seconds of the incumbent, 0 if not timed
}

// Fast returns Sample.Fast of the winner in seconds, or infinity if it was never timed.
func (a Anchor) Fast() float64 { return Sample{Seconds: a.Seconds}.Fast() }

// Result is a kernel table with the statistics of its search.
type Result struct {
	Rules    []plans.Rule
	Anchors  []Anchor // those that were searched, ascending
	Trials   int      // calls of the Timer
	Trial    float64  // median seconds of such a call, including its repetitions
	Noise    float64  // A/A: the median relative difference between two runs of the same schedule
	Reopened []int    // M at which a crossed regime made all micro-kernels compete again
	Reused   int      // M from which schedules were reused without search; 0: never
	Cut      int      // anchors that the budget left unsearched

	Unfinished []int // M at which the budget ended an exhaustive search before the end of its grid
	Rejected   []evidence.Rejected
}

// Event is the argument of a Progress callback.
type Event struct {
	Phase     string
	Key       plans.WeightKey
	M         int
	Stage     string
	Schedule  plans.Schedule // just timed
	Seconds   float64        // of the whole shape
	Best      float64        // seconds of the best schedule for this M so far
	GFLOPS    float64        // of the best
	OfCeiling float64        // speed of the best relative to the ceiling; 0 if unknown
	Trials    int
}

func (p *Problem) check() error {
	switch {
	case len(p.Anchors) == 0 || p.Anchors[0] < 1 || !slices.IsSorted(p.Anchors):
		return fmt.Errorf("search %s: the anchor lengths must be positive and ascending", p.Key)
	case p.Threads < 1:
		return fmt.Errorf("search %s: no active threads", p.Key)
	case p.Incumbent == nil:
		return fmt.Errorf("search %s: no incumbent schedule", p.Key)
	}
	return nil
}

// ceilingSeconds returns the seconds of m rows at the ceiling, or 0 if it is unknown.
func (p *Problem) ceilingSeconds(m int) float64 {
	if p.Ceiling.Bandwidth <= 0 || len(p.Ceiling.Targets) == 0 {
		return 0
	}
	return p.Ceiling.Seconds(p.Ceiling.Targets[0], p.work(m))
}

func (p *Problem) work(m int) roofline.Work {
	return roofline.MatMul(m, p.Key.N, p.Key.K, roofline.Bits(p.Key.Type))
}
