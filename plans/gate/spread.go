package gate

import (
	"fmt"
	"math"
	"slices"

	"sandwich/internal/num"
)

// Spread is the noise of a runner: the difference of equal arms, and its kind.
type Spread struct {
	Share float64 `json:"aa_noise"`
	Cause Cause   `json:"aa_cause"`
}

// Cause is the kind of a spread.
type Cause string

// Values of Cause, and the factor by which each may exceed the noise limit. Interleaved arms run in
// the same rounds, so a change of the speed between rounds does not affect their ratio; it only
// shows that the runner has other work, which may also change the speed within a round.
const (
	Noise     Cause = "noise"           // largest deviation of the interval of the ratio of equal arms
	Earlier   Cause = "recorded noise"  // the same, from an earlier race
	Scatter   Cause = "scatter"         // half the interquartile range of samples that were not interleaved
	TwoSpeeds Cause = "two speeds"      // the same for interleaved samples: an intermittent noisy neighbor
	Drift     Cause = "drift"           // range of the medians of the thirds of the run
	Others    Cause = "other processes" // largest fraction of a PU that they used
)

var ceilings = map[Cause]float64{Noise: 1, Earlier: 1, Scatter: 1, TwoSpeeds: 2, Drift: 3, Others: 2}

// Above reports whether a spread exceeds the noise limit.
func (s Spread) Above(ceiling float64) bool { return s.Share > s.allowed(ceiling) }

func (s Spread) allowed(ceiling float64) float64 { return ceiling * ceilings[s.Cause] }

func (s Spread) text(ceiling float64) string {
	limit := percent(s.allowed(ceiling))
	switch s.Cause {
	case Others:
		return fmt.Sprintf("other processes used %s of a PU, above the limit of %s: stop them, or use a quieter "+
			"runner", percent(s.Share), limit)
	case Drift, TwoSpeeds:
		return fmt.Sprintf("the speed of this runner changed by %s (%s), above the limit of %s", percent(s.Share),
			s.Cause, limit)
	}
	return fmt.Sprintf("equal arms differ by %s (%s), above the limit of %s", percent(s.Share), s.Cause, limit)
}

// Spread returns the spread that is largest relative to its limit.
func (r *Row) Spread(interleaved bool) (worst Spread) {
	for _, s := range r.spreads(interleaved) {
		if worst.Cause == "" || s.Share/ceilings[s.Cause] > worst.Share/ceilings[worst.Cause] {
			worst = s
		}
	}
	return worst
}

func (r *Row) spreads(interleaved bool) (out []Spread) {
	if out = append(out, Spread{r.Recorded, Earlier}); len(r.Again) > 0 {
		out[0] = Spread{ratio(rounds(r.Baseline), rounds(r.Again), interleaved).maxDeviation(), Noise}
	}
	if r.Others > 0 {
		out = append(out, Spread{r.Others, Others})
	}
	base := r.base()
	all := slices.Sorted(slices.Values(base.all()))
	if len(all) < 4 {
		return out
	}
	middle, wide := num.Median(all), Scatter
	if interleaved {
		wide = TwoSpeeds
	}
	out = append(out, Spread{(num.Quantile(all, 0.75) - num.Quantile(all, 0.25)) / 2 / middle, wide})
	if n := len(base) / 3; interleaved && n >= 3 {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range 3 {
			third := num.Median(base[i*n : (i+1)*n].all())
			low, high = min(low, third), max(high, third)
		}
		out = append(out, Spread{(high - low) / middle, Drift})
	}
	return out
}
