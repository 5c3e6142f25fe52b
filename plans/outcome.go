package plans

import (
	"math"
	"slices"
	"strings"

	"sandwich/runtime/phase"
)

// Arms that every race of a phase has beside the candidates. The name of an arm in the evidence is
// that of its phase, a comma, and one of these or a candidate's, with WinnerMark before the one
// that entered the plan.
const (
	ArmDefault  = "default"
	ArmAgain    = "default again" // the A/A arm
	ArmUnpinned = "unpinned"
	WinnerMark  = "winner: "
)

// Gain is how much faster one arm ran than another, 0.1 for 10 %, over rounds in which both were
// measured in turn.
type Gain struct {
	Median float64 `json:"median"` // of the means of any two rounds
	Low    float64 `json:"low"`    // it lies from Low to High with 95 % confidence over all such rounds; below
	High   float64 `json:"high"`
	Rounds int     `json:"n"` // six rounds these are the least and the most, with one they say nothing
	Chance float64 `json:"p"` // that equal arms show so much or more; 0.5 and above where this one was not faster
}

// far is the end of the interval that is further from nothing.
func (g Gain) far() float64 { return max(math.Abs(g.Low), math.Abs(g.High)) }

// GainOver compares arms by their tests, round by round: what disturbs the machine meets both sides
// of a round. Rounds that one side did not run count for neither.
func GainOver(base, arm []Arm) Gain {
	if len(base) == 0 || len(base) != len(arm) {
		return Gain{}
	}
	var gains []float64
	for _, round := range base[0].rounds() {
		logs, whole := 0.0, true
		for i := range base {
			x, ran := base[i].at(round)
			y, too := arm[i].at(round)
			if whole = whole && ran && too; !whole {
				break
			}
			if x <= 0 || y <= 0 {
				return Gain{} // no speed: somebody wrote this evidence by hand
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

// untuned is how the default plan ran, by both of its arms: the geometric mean of each round that
// both ran, which has half the variance of one.
func untuned(arms map[string][]Arm) []Arm { return both(arms[ArmDefault], arms[ArmAgain]) }

// both is the geometric mean of two arms in the rounds that both ran, and the first one in others.
func both(x, y []Arm) []Arm {
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

// Over is the gain of an arm of a race over the untuned plan.
func Over(arms map[string][]Arm, name string) Gain { return between(arms, ArmDefault, name) }

// between is the gain of an arm of a race over another. The untuned plan is both of its arms,
// unless one of them is what it is compared with.
func between(arms map[string][]Arm, base, name string) Gain {
	side := func(name, other string) []Arm {
		if name == ArmDefault && other != ArmAgain {
			return untuned(arms)
		}
		return arms[name]
	}
	return GainOver(side(base, name), side(name, base))
}

// exactHalves is how many samples MedianRank counts for.
const exactHalves = 1000

// MedianRank is how many of n sorted samples may be left out at either end for the rest to hold the
// median with 95 % confidence: each sample is above it with an even chance, whatever their
// distribution.
func MedianRank(n int) int {
	if n > exactHalves { // where the chance of none is less than a number can say, by the normal distribution
		return int(float64(n)/2 - 0.98*math.Sqrt(float64(n)))
	}
	p := math.Pow(0.5, float64(n)) // that exactly k samples lie below the median
	sum := p
	k := 0
	for ; 2*sum <= 0.05; k++ {
		p *= float64(n-k) / float64(k+1)
		sum += p
	}
	return max(0, k-1)
}

// Below fewRounds rounds only what is plain counts.
const (
	fewRounds = 3
	plainGain = 0.1
)

// Noise is the gain that two equal arms may show in a race: a candidate must show more.
func Noise(base, again []Arm) float64 {
	g := GainOver(base, again)
	if g.Rounds < fewRounds {
		return max(plainGain, g.far())
	}
	return g.far()
}

// Beats says whether a gain stands out of the noise.
func (g Gain) Beats(noise float64) bool { return g.Median > noise && g.Low > 0 }

// likelyChance is how likely equal arms may show a gain that is taken all the same.
const likelyChance = 0.1

// Likely says whether a gain is worth taking where being wrong costs no more than leaving it: nine
// in ten gains of nothing are not taken, and hardly one that is a loss.
func (g Gain) Likely() bool { return g.Median > 0 && g.Rounds > fewRounds && g.Chance <= likelyChance }

// Outcome is what the race of a phase came to.
type Outcome struct {
	Phase string  `json:"phase"`
	Arm   string  `json:"arm"`          // that entered the plan
	Kept  bool    `json:"default_kept"` // that arm is the default
	Gain  Gain    `json:"gain"`         // over the default, which where it was kept is that of the best candidate
	Noise float64 `json:"noise"`
}

// Over is how much faster than the default the phase became.
func (o Outcome) Over() float64 {
	if o.Kept {
		return 0
	}
	return o.Gain.Median
}

// Outcomes tells from the arms what was decided: prefill, then decode, each if it was measured.
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

// Race is the arms of a phase by name, an element a test, and the names in order; marks of winners
// are left out.
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

// State is how far a plan was measured, in the words that people read.
type State string

// The states of a plan.
const (
	Untuned     State = "untuned"
	Tuned       State = "tuned"
	DefaultKept State = "default kept, measured" // nothing beat the default heuristic on this host
)

// State of the bundle's plan.
func (b *Bundle) State() State {
	outcomes := b.Evidence.Outcomes()
	switch {
	case !b.Plan.Tuned:
		return Untuned
	case len(outcomes) > 0 && !slices.ContainsFunc(outcomes, func(o Outcome) bool { return !o.Kept }):
		return DefaultKept
	}
	return Tuned
}
