package gate

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Row is the samples of one case, all rates: more is better.
type Row struct {
	Name  string `json:"row"`   // pp512, tg batch 8
	Phase string `json:"phase"` // prefill, decode
	Unit  string `json:"unit"`  // tokens/s
	Why   string `json:"why"`   // the row is there: always, or where the plans differ

	Baseline  []float64 `json:"baseline_samples"`
	Again     []float64 `json:"again_samples"` // the baseline once more: the A/A arm
	Candidate []float64 `json:"candidate_samples"`
	// Spread of equal arms that was found elsewhere, where Again has nothing; 0: none
	Recorded float64 `json:"recorded_spread,omitempty"`
	// the largest share of a PU that other processes took meanwhile; 0: none, or not known
	Others float64 `json:"others,omitempty"`

	// the rate at the machine's ceilings of the same minutes; 0: unknown
	BaselineCeiling  float64 `json:"baseline_ceiling,omitempty"`
	CandidateCeiling float64 `json:"candidate_ceiling,omitempty"`
}

// Finding is what a row came to.
type Finding string

// The findings.
const (
	Fine         Finding = "ok"
	Improved     Finding = "improved"
	Regressed    Finding = "regressed"
	Unmeasurable Finding = "unmeasurable" // equal arms differ by more than the ceiling
	Undecided    Finding = "undecided"    // slower than allowed by the median, and not proven
	HostChanged  Finding = "host changed" // slower, and by no more than the machine's ceilings
)

// RowVerdict is a row with what was concluded from it.
type RowVerdict struct {
	Row
	Finding   Finding  `json:"finding"`
	Ratio     Interval `json:"ratio"` // candidate over baseline
	P         float64  `json:"p"`     // Mann-Whitney, corrected by Holm over the rows
	Spread             // A/A
	OfCeiling float64  `json:"ratio_of_roofs,omitempty"`
	Waived    string   `json:"waived,omitempty"` // the reason of the waiver, where one holds
	Text      string   `json:"text"`
}

// Options of Judge.
type Options struct {
	MaxRegress  float64 // 0.03: the median may be 3 % lower
	Ceiling     float64 // of the A/A spread: DefaultCeiling
	Interleaved bool    // samples of a round were taken in the same moments
	Waivers     []Waiver
	Now         time.Time // for the expiry of waivers
}

// DefaultCeiling is the A/A spread above which a row is unmeasurable by default.
const DefaultCeiling = 0.07

// level is the chance of a false alarm that is accepted for all rows together.
const level = 0.05

// leastRounds is how many samples of each side a row needs to say anything: with four the
// Mann-Whitney test can prove nothing.
const leastRounds = 5

// Estimate is the ratio of the candidate to the baseline of a row: what decides when enough was
// measured.
func (r *Row) Estimate(inTurn bool) Interval { return ratio(r.base(), rounds(r.Candidate), inTurn) }

// base is all samples of the baseline, a list a round.
func (r *Row) base() arm {
	if len(r.Again) == len(r.Baseline) {
		return rounds(r.Baseline, r.Again)
	}
	return rounds(r.Baseline)
}

// proven is the probability that sides which are alike differ as much.
func (r *Row) proven(inTurn bool) float64 {
	if base, candidate := r.base(), rounds(r.Candidate); inTurn && len(base) == len(candidate) {
		return rankTest(base, candidate)
	}
	return mannWhitney(slices.Concat(r.Baseline, r.Again), r.Candidate)
}

// Judge concludes from the samples of all rows.
func Judge(rows []Row, o Options) []RowVerdict {
	out := make([]RowVerdict, len(rows))
	p := make([]float64, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = RowVerdict{Row: *r, Ratio: r.Estimate(o.Interleaved)}
		out[i].Spread = r.Spread(o.Interleaved)
		p[i] = r.proven(o.Interleaved)
	}
	for i, corrected := range holm(p) {
		out[i].P = corrected
		out[i].judge(o)
	}
	return out
}

func (v *RowVerdict) judge(o Options) {
	v.Finding, v.Text = v.find(o)
	if v.Finding != Unmeasurable && v.Finding != Undecided {
		return
	}
	for _, w := range o.Waivers {
		if w.Row != v.Name {
			continue
		}
		switch {
		case !o.Now.Before(w.Expires):
			v.Text += fmt.Sprintf("; its waiver expired on %s", w.Expires.Format(time.DateOnly))
		case v.Above(w.Ceiling):
			v.Text += fmt.Sprintf("; its waiver holds up to %s", percent(w.Ceiling))
		default:
			v.Waived = w.Reason
			v.Text += "; waived: " + w.Reason
		}
	}
}

func (v *RowVerdict) find(o Options) (Finding, string) {
	n := min(len(v.Baseline), len(v.Candidate))
	bad := func(x float64) bool { return !(x > 0) || math.IsInf(x, 0) }
	switch {
	case n < leastRounds:
		return Unmeasurable, fmt.Sprintf("%d samples are too few", n)
	case slices.ContainsFunc(slices.Concat(v.Baseline, v.Again, v.Candidate), bad):
		return Unmeasurable, "a sample is no rate"
	case v.Above(o.Ceiling):
		return Unmeasurable, v.Spread.text(o.Ceiling)
	}
	slower := func(r Interval) bool { return 1-r.Median > o.MaxRegress && r.High < 1 }
	proven := v.P < level
	if v.BaselineCeiling > 0 && v.CandidateCeiling > 0 {
		byCeilings := v.Ratio.scaled(v.BaselineCeiling / v.CandidateCeiling)
		v.OfCeiling = byCeilings.Median
		if slower(v.Ratio) && proven && !slower(byCeilings) {
			lower := percent(1 - v.CandidateCeiling/v.BaselineCeiling)
			return HostChanged, fmt.Sprintf("the host's ceilings are %s lower", lower)
		}
	}
	switch {
	case slower(v.Ratio) && proven:
		return Regressed, fmt.Sprintf("%s slower, at most %s is allowed", percent(1-v.Ratio.Median),
			percent(o.MaxRegress))
	case 1-v.Ratio.Median > o.MaxRegress:
		return Undecided, fmt.Sprintf("%s slower by the median, which is not proven; give a larger --budget",
			percent(1-v.Ratio.Median))
	case v.Ratio.Low > 1 && proven:
		return Improved, fmt.Sprintf("%s faster", percent(v.Ratio.Median-1))
	}
	return Fine, ""
}

// percent is a share as people read it.
func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
