package replay

import (
	"slices"
	"time"

	"sandwich/internal/num"
)

// Pace is the speed of a machine over the course of a run: a forward that starts at a time takes a
// multiple of its mean duration in the run. A hypervisor or a noisy neighbor that takes the CPUs
// for seconds affects every queue of the run, which a mean does not show. The zero value is a
// machine of even speed.
type Pace struct{ windows []float64 }

// paceWindow is the period of constant pace: longer than most forwards, shorter than the time in
// which a queue fills.
const paceWindow = time.Second

// minBusy is the fraction of a window that forwards must fill for the window to have its own
// pace.
const minBusy = 0.1

// Sample is a measured forward: its start in the run, its duration and its usual duration.
type Sample struct{ At, Took, Usual time.Duration }

// NewPace returns the pace of a run from its forwards. It is relative to their usual durations, so
// that a constant error of the costs has no effect.
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
		if took[w] >= minBusy*paceWindow.Seconds() {
			last = took[w] / usual[w] * sums[1] / sums[0]
		}
		p.windows = append(p.windows, last)
	}
	return p
}

// At returns the duration of a forward that starts at t, relative to the mean.
func (p Pace) At(t time.Duration) float64 {
	if len(p.windows) == 0 {
		return 1
	}
	return p.windows[min(max(int(t/paceWindow), 0), len(p.windows)-1)]
}

// Range returns the 10th and 90th percentile of the windows, or 1 and 1 without any.
func (p Pace) Range() (low, high float64) {
	if len(p.windows) == 0 {
		return 1, 1
	}
	sorted := slices.Sorted(slices.Values(p.windows))
	return num.Quantile(sorted, 0.1), num.Quantile(sorted, 0.9)
}

// of returns the duration of a forward that starts at a time and usually takes took.
func (p Pace) of(took, at time.Duration) time.Duration {
	if len(p.windows) == 0 {
		return took
	}
	return max(1, time.Duration(float64(took)*p.At(at)))
}
