package evidence

import (
	"math"
	"slices"
	"strings"

	"sandwich/runtime/phase"
)

// Names of arms that each race of a phase has in addition to the candidates. The name of an arm
// in the evidence is the phase, a comma, and one of these names or a candidate's. WinnerMark
// precedes the name of the arm that entered the plan.
const (
	ArmDefault  = "default"
	ArmAgain    = "default again" // equal to the default, to measure noise
	ArmUnpinned = "unpinned"
	WinnerMark  = "winner: "
)

// Gain is the relative difference in speed of one arm over another, 0.1 for 10 %, from rounds in
// which both were measured interleaved.
type Gain struct {
	Median float64 `json:"median"` // Hodges-Lehmann estimate: median of the means of any two rounds
	Low    float64 `json:"low"`    // Low and High are the 95 % confidence interval; below six rounds
	High   float64 `json:"high"`
	Rounds int     `json:"n"` // they are the least and the greatest difference
	Chance float64 `json:"p"` // probability that equal arms show this gain or more
}

// maxAbs returns the larger absolute value of the ends of the interval.
func (g Gain) maxAbs() float64 { return max(math.Abs(g.Low), math.Abs(g.High)) }

// GainOver compares two arms by their tests, round by round, so that a disturbance of the machine
// affects both sides of a round. It ignores rounds that only one arm ran. The result is zero if the
// arms have distinct tests or no common rounds.
func GainOver(base, arm []Arm) Gain {
	if len(base) == 0 || len(base) != len(arm) {
		return Gain{}
	}
	var gains []float64
	for i := range base {
		if base[i].Test != arm[i].Test {
			return Gain{}
		}
	}
	for _, round := range base[0].rounds() {
		logs, whole := 0.0, true
		for i := range base {
			x, ran := base[i].at(round)
			y, too := arm[i].at(round)
			if whole = whole && ran && too; !whole {
				break
			}
			if x <= 0 || y <= 0 {
				return Gain{} // invalid speed
			}
			logs += math.Log(y) - math.Log(x)
		}
		if whole {
			gains = append(gains, max(-100, min(logs/float64(len(base)), 100)))
		}
	}
	n := len(gains)
	if n == 0 {
		return Gain{}
	}
	slices.Sort(gains)
	mid, low, high := estimate(gains)
	return Gain{math.Expm1(mid), math.Expm1(low), math.Expm1(high), n, chance(gains)}
}

// untuned returns the speed of the default plan from both of its arms: the geometric mean in rounds
// that both ran, which has half the variance.
func untuned(arms map[string][]Arm) []Arm { return meanOfArms(arms[ArmDefault], arms[ArmAgain]) }

// meanOfArms returns the geometric mean of two arms in rounds that both ran, and the first arm's
// samples in other rounds.
func meanOfArms(x, y []Arm) []Arm {
	if len(x) != len(y) {
		return x
	}
	out := slices.Clone(x)
	for i := range out {
		rounds := x[i].rounds()
		out[i].Samples, out[i].Rounds = make([]float64, len(rounds)), rounds
		for k, round := range rounds {
			v, _ := x[i].at(round)
			if w, ran := y[i].at(round); ran && v > 0 && w > 0 {
				v = math.Sqrt(v) * math.Sqrt(w)
			}
			out[i].Samples[k] = v
		}
	}
	return out
}

// Over returns the gain of an arm of a race over the default plan.
func Over(arms map[string][]Arm, name string) Gain { return between(arms, ArmDefault, name) }

// between returns the gain of the arm name over the arm base. For the default plan it uses both of
// its arms unless the other side is one of them.
func between(arms map[string][]Arm, base, name string) Gain {
	side := func(name, other string) []Arm {
		if name == ArmDefault && other != ArmAgain {
			return untuned(arms)
		}
		return arms[name]
	}
	return GainOver(side(base, name), side(name, base))
}

// exactHalves is the number of samples up to which MedianRank sums the binomial distribution.
const exactHalves = 1000

// MedianRank returns how many of n sorted samples may be dropped at each end so that the rest
// contains the median with 95 % confidence, for any distribution.
func MedianRank(n int) int {
	if n > exactHalves { // 0.5^n underflows: use the normal approximation with continuity correction
		return int(float64(n)/2 - 0.98*math.Sqrt(float64(n)) - 0.5)
	}
	p := math.Pow(0.5, float64(n)) // probability that exactly k samples are below the median
	sum := p
	k := 0
	for ; 2*sum <= 0.05; k++ {
		p *= float64(n-k) / float64(k+1)
		sum += p
	}
	return max(0, k-1)
}

// With fewer than fewRounds rounds, Noise is at least plainGain.
const (
	fewRounds = 3
	plainGain = 0.1
)

// Noise returns the gain that two equal arms showed in a race. A candidate must show a larger one.
func Noise(base, again []Arm) float64 {
	g := GainOver(base, again)
	if g.Rounds < fewRounds {
		return max(plainGain, g.maxAbs())
	}
	return g.maxAbs()
}

// Beats reports whether a gain is larger than noise and significant.
func (g Gain) Beats(noise float64) bool { return g.Median > noise && g.Low > 0 }

// likelyChance is the largest Gain.Chance that Likely accepts.
const likelyChance = 0.1

// Likely reports whether a gain is more likely real than not, for decisions in which a wrong choice
// costs no more than the right one gains. Of equal arms, one in ten passes.
func (g Gain) Likely() bool { return g.Median > 0 && g.Rounds > fewRounds && g.Chance <= likelyChance }

// Outcome is the result of the race of a phase.
type Outcome struct {
	Phase string  `json:"phase"`
	Arm   string  `json:"arm"`          // the arm that entered the plan
	Kept  bool    `json:"default_kept"` // the arm is the default
	Gain  Gain    `json:"gain"`         // over the default; of the best candidate if the default was kept
	Noise float64 `json:"noise"`
}

// Over returns the gain of the phase over the default plan, 0 if the default was kept.
func (o Outcome) Over() float64 {
	if o.Kept {
		return 0
	}
	return o.Gain.Median
}

// Outcomes derives the results of the races from the arms: prefill, then decode, each if it was
// measured.
func (e *Evidence) Outcomes() (out []Outcome) {
	for _, p := range phase.All {
		names, arms := e.Race(p.String())
		base := arms[ArmDefault]
		o := Outcome{Phase: p.String(), Noise: Noise(base, arms[ArmAgain])}
		for _, a := range e.Finalists {
			if name, ok := strings.CutPrefix(a.Name, p.String()+", "+WinnerMark); ok {
				o.Arm = name
			}
		}
		if len(base) == 0 || o.Arm == "" {
			continue
		}
		if o.Kept = o.Arm == ArmDefault; !o.Kept {
			o.Gain = Over(arms, o.Arm)
		}
		for _, name := range names {
			candidate := name != ArmDefault && name != ArmAgain && name != ArmUnpinned
			if g := Over(arms, name); o.Kept && candidate && (o.Gain.Rounds == 0 ||
				g.Median > o.Gain.Median) {
				o.Gain = g
			}
		}
		out = append(out, o)
	}
	return out
}

// Race returns the arms of a phase by name, one element per test, and the names in order. Names
// have no WinnerMark.
func (e *Evidence) Race(phase string) (names []string, arms map[string][]Arm) {
	arms = map[string][]Arm{}
	for _, a := range e.Finalists {
		name, ok := strings.CutPrefix(a.Name, phase+", ")
		if !ok || len(a.Samples) == 0 {
			continue
		}
		name = strings.TrimPrefix(name, WinnerMark)
		if arms[name] == nil {
			names = append(names, name)
		}
		arms[name] = append(arms[name], a)
	}
	return names, arms
}
