package gate

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Row holds the samples of one case. All samples are rates: more is better.
type Row struct {
	Name  string `json:"row"`   // pp512, tg batch 8
	Phase string `json:"phase"` // prefill, decode
	Unit  string `json:"unit"`  // tokens/s
	Why   string `json:"why"`   // why the row is measured; see Case.Why

	Baseline  []float64 `json:"baseline_samples"`
	Again     []float64 `json:"again_samples"` // a second arm of the baseline, to measure noise
	Candidate []float64 `json:"candidate_samples"`
	// Spread of equal arms from another measurement, used if Again is empty; 0: none
	Recorded float64 `json:"recorded_spread,omitempty"`
	// largest fraction of a PU that other processes used in the meantime; 0: none or unknown
	Others float64 `json:"others,omitempty"`

	// rate at the ceilings that were measured at the same time; 0: unknown
	BaselineCeiling  float64 `json:"baseline_ceiling,omitempty"`
	CandidateCeiling float64 `json:"candidate_ceiling,omitempty"`
}

// Finding is the conclusion for a row.
type Finding string

// Values of Finding.
const (
	Fine         Finding = "ok"
	Improved     Finding = "improved"
	Regressed    Finding = "regressed"
	Unmeasurable Finding = "unmeasurable" // equal arms differ by more than the noise limit
	Undecided    Finding = "undecided"    // the median is slower than allowed, but the difference is not significant
	HostChanged  Finding = "host changed" // slower, but no more than the ceilings of the machine
)

// RowVerdict is a row with its conclusion.
type RowVerdict struct {
	Row
	Finding   Finding  `json:"finding"`
	Ratio     Interval `json:"ratio"` // candidate over baseline
	P         float64  `json:"p"`     // p-value with Holm's correction over the rows
	Spread             // of equal arms
	OfCeiling float64  `json:"ratio_of_ceilings,omitempty"` // ratio relative to the ceilings of the machine
	Waived    string   `json:"waived,omitempty"`            // reason of the waiver, if one applies
	Text      string   `json:"text"`
}

// Options configures Judge.
type Options struct {
	MaxRegress  float64 // allowed decrease of the median: 0.03 for 3 %
	Ceiling     float64 // limit of the spread of equal arms, such as DefaultCeiling
	Interleaved bool    // samples with one index were taken in the same round
	Waivers     []Waiver
	Now         time.Time // for the expiry of waivers
}

// DefaultCeiling is the default limit of the spread of equal arms, above which a row is
// unmeasurable.
const DefaultCeiling = 0.07

// level is the accepted probability of a false alarm for all rows together.
const level = 0.05

// minRounds is the minimum number of samples per side. With four, two rows whose samples do not
// overlap at all are not significant after Holm's correction.
const minRounds = 5

// Estimate returns the ratio of the candidate to the baseline of a row. interleaved reports whether
// samples with one index were taken in the same round.
func (r *Row) Estimate(interleaved bool) Interval {
	return ratio(r.base(), rounds(r.Candidate), interleaved)
}

// base returns all samples of the baseline by round.
func (r *Row) base() arm {
	if len(r.Again) == len(r.Baseline) {
		return rounds(r.Baseline, r.Again)
	}
	return rounds(r.Baseline)
}

// pValue returns the p-value of the difference between baseline and candidate.
func (r *Row) pValue(interleaved bool) float64 {
	if base, candidate := r.base(), rounds(r.Candidate); interleaved && len(base) == len(candidate) {
		return rankTest(base, candidate)
	}
	return mannWhitney(slices.Concat(r.Baseline, r.Again), r.Candidate)
}

// Judge draws a conclusion for each row.
func Judge(rows []Row, o Options) []RowVerdict {
	out := make([]RowVerdict, len(rows))
	p := make([]float64, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = RowVerdict{Row: *r, Ratio: r.Estimate(o.Interleaved)}
		out[i].Spread = r.Spread(o.Interleaved)
		p[i] = r.pValue(o.Interleaved)
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
			v.Text += fmt.Sprintf("; its waiver allows at most %s", percent(w.Ceiling))
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
	case n < minRounds:
		return Unmeasurable, fmt.Sprintf("%d samples are too few", n)
	case slices.ContainsFunc(slices.Concat(v.Baseline, v.Again, v.Candidate), bad):
		return Unmeasurable, "a sample is not a positive number"
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
		return Undecided, fmt.Sprintf("the median is %s slower, which is not significant; use a larger --budget",
			percent(1-v.Ratio.Median))
	case v.Ratio.Low > 1 && proven:
		return Improved, fmt.Sprintf("%s faster", percent(v.Ratio.Median-1))
	}
	return Fine, ""
}

// percent formats a fraction as a percentage.
func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
