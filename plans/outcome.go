package plans

import (
	"math"
	"slices"
	"strings"
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
	Median float64 `json:"median"`
	Low    float64 `json:"low"` // the median of all such rounds lies from Low to High with 95 % confidence; below
	High   float64 `json:"high"`
	Rounds int     `json:"n"` // six rounds these are the least and the most, with one they say nothing
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
			gains = append(gains, math.Expm1(min(logs/float64(len(base)), 100)))
		}
	}
	n := len(gains)
	if n == 0 {
		return Gain{}
	}
	slices.Sort(gains)
	k := MedianRank(n)
	median := (gains[(n-1)/2] + gains[n/2]) / 2
	return Gain{Median: median, Low: gains[k], High: gains[n-1-k], Rounds: n}
}

// MedianRank is how many of n sorted samples may be left out at either end for the rest to hold the
// median with 95 % confidence: each sample is above it with an even chance, whatever their
// distribution.
func MedianRank(n int) int {
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
	for _, phase := range []string{"prefill", "decode"} {
		names, arms := e.Race(phase)
		base := arms[ArmDefault]
		o := Outcome{Phase: phase, Noise: Noise(base, arms[ArmAgain])}
		for _, a := range e.Finalists {
			if name, ok := strings.CutPrefix(a.Name, phase+", "+WinnerMark); ok {
				o.Arm = name
			}
		}
		if len(base) == 0 || o.Arm == "" {
			continue
		}
		if o.Kept = o.Arm == ArmDefault; !o.Kept {
			o.Gain = GainOver(base, arms[o.Arm])
		}
		for _, name := range names {
			candidate := name != ArmDefault && name != ArmAgain && name != ArmUnpinned
			if g := GainOver(base, arms[name]); o.Kept && candidate && (o.Gain.Rounds == 0 ||
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
	DefaultKept State = "default kept, measured" // nothing beat the rules of thumb on this host
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
