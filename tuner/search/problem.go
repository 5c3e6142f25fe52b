package search

import (
	"fmt"
	"slices"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
)

// Problem is one weight shape in one phase: which schedule runs it, for every M?
type Problem struct {
	Phase   string // prefill or decode, for reports
	Key     plans.WeightKey
	Compute microkernel.Compute // fixed before the tables are searched (rule 6)
	Threads int                 // active PUs of the phase
	Anchors []int               // the M to search at, ascending; see AnchorLengths
	Kernels []MicroKernel       // all candidates; see Candidates
	Ways    [][2]int            // polymerization schemes; see Polymerizations
	// of the active PUs; without bandwidth or targets nothing is said of ceilings and no regime is
	// crossed
	Ceiling   roofline.Ceiling
	CacheL1   int // bytes one thread may count on
	CacheL2   int
	Incumbent func(m int) plans.Schedule   // what runs without tuning; always a candidate
	Hints     func(m int) []plans.Schedule // schedules that won elsewhere and are worth a trial; nil: none
	// MaxColumns is how many columns a trial of m rows may have, for a Timer whose operands are
	// bounded; nil: all.
	MaxColumns func(m int) int
	Known      []Anchor // results for some anchors from an equal problem: taken over, not searched again
}

// Options say how hard to search.
type Options struct {
	Strategy string // see Strategies; "" is sandwich
	Effort   Effort
	Sigma    int                  // sliding window: first shapes that try all micro-kernels, and winners kept; 0: 16
	Seed     uint64               // of everything drawn at random
	Alone    bool                 // for comparisons: the incumbent is timed but cannot win, the strategy stands alone
	Budget   time.Duration        // of this problem
	Clock    func() time.Duration // time since any fixed moment; nil: the wall clock
	Progress func(Event)          // called from the searching goroutine; may be nil
}

// Effort is how many candidates are tried at an anchor and how often each is timed.
type Effort struct {
	Name     string
	Tiles    int // register tiles that are screened at an anchor where all micro-kernels compete; 0: all
	Variants int // of the best tiles, how many have all their unrollings and forms screened
	Starts   int // micro-kernels that enter fast start
	Fine     int // fine steps of a polymerization scheme
	Reps     int // calls that decide
	Octave   int // anchors per doubling of M beyond 16
}

// The efforts, by name.
var (
	Quick    = Effort{Name: "quick", Tiles: 8, Variants: 1, Starts: 1, Fine: 2, Reps: 3, Octave: 1}
	Standard = Effort{Name: "standard", Tiles: 0, Variants: 2, Starts: 2, Fine: 6, Reps: 5, Octave: 2}
	Full     = Effort{Name: "full", Tiles: 0, Variants: 6, Starts: 4, Fine: 16, Reps: 7, Octave: 4}
)

// ParseEffort is the effort of a name.
func ParseEffort(name string) (Effort, error) {
	for _, e := range []Effort{Quick, Standard, Full} {
		if e.Name == name {
			return e, nil
		}
	}
	return Effort{}, fmt.Errorf("unknown effort %q; choose quick, standard or full", name)
}

// AnchorLengths are the M that are searched between 1 and most: small ones closely, since decode
// batches and kernels differ most there, then octave per doubling (1, 2 or 4). most itself is
// always one.
func AnchorLengths(most, octave int) []int {
	var out []int
	for m := 1; m < most; {
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
	return append(out, most)
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

// Anchor is the outcome at one M.
type Anchor struct {
	M        int
	Schedule plans.Schedule
	Seconds  []float64 // calls of the winner, scaled to the whole shape; none: never timed, the incumbent stands
	Stage    string    // which stage found it
	Tried    int       // distinct schedules timed
	Rival    float64   // seconds of the incumbent here, 0 when not timed
}

// Fast is Sample.Fast of the winner, in seconds; infinite when it was never timed.
func (a Anchor) Fast() float64 { return Sample{Seconds: a.Seconds}.Fast() }

// Result is a kernel table and how it came about.
type Result struct {
	Rules    []plans.Rule
	Anchors  []Anchor // those that were searched, ascending
	Trials   int      // calls of the Timer
	Trial    float64  // median seconds of such a call, with its repetitions
	Noise    float64  // A/A: the largest relative difference seen between two arms that are the same schedule
	Reopened []int    // M at which a crossed regime let all micro-kernels compete again
	Reused   int      // M from which schedules were reused without search, 0: never
	Cut      int      // anchors that the budget left unsearched

	Unfinished []int // M at which the budget ended an exhaustive search inside its grid
	Rejected   []plans.Rejected
}

// Event is what a Progress callback hears.
type Event struct {
	Phase     string
	Key       plans.WeightKey
	M         int
	Stage     string
	Schedule  plans.Schedule // just timed
	Seconds   float64        // of the whole shape
	Best      float64        // seconds of the best schedule for this M so far
	GFLOPS    float64        // of the best
	OfCeiling float64        // the best over what the ceiling allows, 0 when no ceiling is known
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

// seconds the ceiling allows for m rows, 0 when no ceiling is known.
func (p *Problem) ceilingSeconds(m int) float64 {
	if p.Ceiling.Bandwidth <= 0 || len(p.Ceiling.Targets) == 0 {
		return 0
	}
	return p.Ceiling.Seconds(p.Ceiling.Targets[0], p.work(m))
}

func (p *Problem) work(m int) roofline.Work {
	return roofline.MatMul(m, p.Key.N, p.Key.K, roofline.Bits(p.Key.Type))
}
