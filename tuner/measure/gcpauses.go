package measure

import (
	"math"
	"runtime/metrics"
	"time"
)

// gcPauses measures the pauses of the garbage collector since a moment.
type gcPauses struct{ before []uint64 }

const gcPausesName = "/sched/pauses/total/gc:seconds"

func readPauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: gcPausesName}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil
	}
	return s[0].Value.Float64Histogram()
}

// countPauses starts the measurement.
func countPauses() (g gcPauses) {
	if h := readPauses(); h != nil {
		g.before = append(g.before, h.Counts...)
	}
	return g
}

// since returns the number of pauses since countPauses, and the upper bound of the histogram bucket
// of the longest (the lower bound of the last bucket, which has no upper one).
func (g gcPauses) since() (count uint64, longest time.Duration) {
	h := readPauses()
	if h == nil || len(h.Counts) != len(g.before) {
		return 0, 0
	}
	for i, n := range h.Counts {
		if n -= g.before[i]; n > 0 {
			count += n
			end := h.Buckets[i+1]
			if math.IsInf(end, 1) {
				end = h.Buckets[i]
			}
			longest = time.Duration(end * float64(time.Second))
		}
	}
	return count, longest
}
