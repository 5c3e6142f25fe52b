package load

import "slices"

// OverSeeds merges the figures of runs with different seeds into their means and extremes. Figures
// that only one run has are kept. A single list is returned unchanged.
func OverSeeds(runs [][]Figure) (out []Figure) {
	if len(runs) == 1 {
		return runs[0]
	}
	for _, run := range runs {
		for i := range run {
			f := run[i]
			at := slices.IndexFunc(out, func(o Figure) bool {
				return o.Goal == f.Goal && o.Policy == f.Policy && o.What == f.What
			})
			if at < 0 {
				at = len(out)
				out = append(out, Figure{Goal: f.Goal, Policy: f.Policy, What: f.What, Least: f.Least, Rate: f.Rate,
					Lowest: f.Measured, Highest: f.Measured})
			}
			out[at].join(&f)
		}
	}
	return out
}

// join adds the figure of one more seed to the means.
func (f *Figure) join(by *Figure) {
	f.Seeds++
	n := float64(f.Seeds)
	for _, x := range []struct {
		mean *float64
		of   float64
	}{{&f.Alone, by.Alone}, {&f.Mixed, by.Mixed}, {&f.Measured, by.Measured}, {&f.Bound, by.Bound}} {
		*x.mean += (x.of - *x.mean) / n
	}
	f.Samples += by.Samples
	f.Lowest, f.Highest = min(f.Lowest, by.Measured), max(f.Highest, by.Measured)
	if !by.Met() {
		f.Missed++
	}
}
