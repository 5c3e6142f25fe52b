package gate

import (
	"fmt"
	"math"
	"slices"
)

// Spread is what speaks against a runner: how far equal arms lie apart, and why.
type Spread struct {
	Share float64 `json:"aa_noise"`
	Cause Cause   `json:"aa_cause"`
}

// Cause of a spread.
type Cause string

// The causes, and how many ceilings each may take. Interleaved arms share a round's moments, so
// that what moves the level of whole rounds leaves their ratio alone; it tells of a runner with
// other work, whose next minute may move within a round.
const (
	Noise     Cause = "noise"           // the further end of the interval of the ratio of equal arms
	Earlier   Cause = "recorded noise"  // the same, of an earlier race
	Scatter   Cause = "scatter"         // half the range of the middle half of samples that were not interleaved
	TwoSpeeds Cause = "two speeds"      // the same of interleaved samples: a noisy neighbor that comes and goes
	Drift     Cause = "drift"           // how far medians of thirds of the run lie apart
	Others    Cause = "other processes" // the largest share of a PU that they took
)

var ceilings = map[Cause]float64{Noise: 1, Earlier: 1, Scatter: 1, TwoSpeeds: 2, Drift: 3, Others: 2}

// Above says that a spread is more than a ceiling of noise allows.
func (s Spread) Above(ceiling float64) bool { return s.Share > s.allowed(ceiling) }

func (s Spread) allowed(ceiling float64) float64 { return ceiling * ceilings[s.Cause] }

func (s Spread) text(ceiling float64) string {
	limit := percent(s.allowed(ceiling))
	switch s.Cause {
	case Others:
		return fmt.Sprintf("other processes took %s of a PU, above the ceiling of %s: stop them, or use a quieter "+
			"runner", percent(s.Share), limit)
	case Drift, TwoSpeeds:
		return fmt.Sprintf("the speed of this runner moved by %s (%s), above the ceiling of %s", percent(s.Share),
			s.Cause, limit)
	}
	return fmt.Sprintf("equal arms differ by %s (%s), above the ceiling of %s", percent(s.Share), s.Cause, limit)
}

// Spread is what comes nearest to its ceiling, or exceeds it most.
func (r *Row) Spread(inTurn bool) (worst Spread) {
	for _, s := range r.spreads(inTurn) {
		if worst.Cause == "" || s.Share/ceilings[s.Cause] > worst.Share/ceilings[worst.Cause] {
			worst = s
		}
	}
	return worst
}

func (r *Row) spreads(inTurn bool) (out []Spread) {
	if out = append(out, Spread{r.Recorded, Earlier}); len(r.Again) > 0 {
		out[0] = Spread{ratio(rounds(r.Baseline), rounds(r.Again), inTurn).far(), Noise}
	}
	if r.Others > 0 {
		out = append(out, Spread{r.Others, Others})
	}
	base := r.base()
	all := slices.Sorted(slices.Values(base.all()))
	if len(all) < 4 {
		return out
	}
	middle, wide := all[len(all)/2], Scatter
	if inTurn {
		wide = TwoSpeeds
	}
	out = append(out, Spread{(all[len(all)*3/4] - all[len(all)/4]) / 2 / middle, wide})
	if n := len(base) / 3; inTurn && n >= 3 {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range 3 {
			third := Median(base[i*n : (i+1)*n].all())
			low, high = min(low, third), max(high, third)
		}
		out = append(out, Spread{(high - low) / middle, Drift})
	}
	return out
}
