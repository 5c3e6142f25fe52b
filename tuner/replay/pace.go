package replay

import (
	"slices"
	"time"
)

// Pace is how a machine's speed moved in the course of a run: a forward that begins at a time takes
// so many times what it takes on the average of the run. A hypervisor or a neighbor that takes the
// CPUs for seconds moves every queue of the run; a mean over the run knows nothing of when. The
// zero value is a machine that kept its speed.
type Pace struct{ windows []float64 }

// paceWindow is for how long the pace is held to be the same: longer than most forwards, shorter
// than what a queue needs to fill.
const paceWindow = time.Second

// leastBusy is the share of a window that forwards have to fill for it to have a pace of its own.
const leastBusy = 0.1

// Sample is a forward as it was, from a time of the run on, and what it takes on the average.
type Sample struct{ At, Took, Usual time.Duration }

// NewPace is the pace of a run of which these forwards are known. Beside each other they take what
// they usually do: what costs predict wrongly throughout stays wrong.
func NewPace(samples []Sample) (p Pace) {
	var took, usual []float64
	sums := [2]float64{}
	for _, s := range samples {
		if s.Took <= 0 || s.Usual <= 0 || s.At < 0 {
			continue
		}
		sums[0] += s.Took.Seconds()
		sums[1] += s.Usual.Seconds()
		for at, end := s.At, s.At+s.Took; at < end; {
			w := int(at / paceWindow)
			for len(took) <= w {
				took, usual = append(took, 0), append(usual, 0)
			}
			until := min(end, time.Duration(w+1)*paceWindow)
			took[w] += (until - at).Seconds()
			usual[w] += s.Usual.Seconds() * float64(until-at) / float64(s.Took)
			at = until
		}
	}
	last := 1.0
	for w := range took {
		if took[w] >= leastBusy*paceWindow.Seconds() {
			last = took[w] / usual[w] * sums[1] / sums[0]
		}
		p.windows = append(p.windows, last)
	}
	return p
}

// At is by how much a forward takes longer than on the average that begins at a time.
func (p Pace) At(t time.Duration) float64 {
	if len(p.windows) == 0 {
		return 1
	}
	return p.windows[min(max(int(t/paceWindow), 0), len(p.windows)-1)]
}

// Range is what a tenth of the windows lie below, and a tenth above; 1 and 1 without any.
func (p Pace) Range() (low, high float64) {
	if len(p.windows) == 0 {
		return 1, 1
	}
	sorted := slices.Sorted(slices.Values(p.windows))
	n := len(sorted)
	return sorted[n/10], sorted[n-1-n/10]
}

// of is what takes so long on the average and begins at a time.
func (p Pace) of(took, at time.Duration) time.Duration {
	if len(p.windows) == 0 {
		return took
	}
	return max(1, time.Duration(float64(took)*p.At(at)))
}
