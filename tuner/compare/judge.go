package compare

import (
	"fmt"
	"math"

	"sandwich/plans"
	"sandwich/tuner/measure/kernels"
	"sandwich/tuner/search"
)

// judge times every table interleaved at every held-out M, on the whole weight if its output
// fits.
func (c *comparison) judge(b *kernels.GemmBench, p search.Problem, rows []Row) error {
	o := c.o
	const long = 256 // M from which calls are long enough for seven samples
	for _, m := range o.HeldOut {
		columns := min(o.Key.N, p.MaxColumns(m))
		samples := make([]search.Sample, len(rows))
		rounds := 21
		if m >= long {
			rounds = 7
		}
		for range rounds {
			for i := range rows {
				ph := plans.Phase{Tables: []plans.Table{{WeightKey: o.Key, Rules: rows[i].rules}}}
				s, _ := ph.Lookup(o.Key, m)
				one, err := b.Time(search.Trial{Key: o.Key, Compute: p.Compute, M: m, Columns: columns, Schedule: s,
					Limit: search.Limit{MinReps: 1, MaxReps: 1}})
				if err != nil {
					return err
				}
				samples[i].Seconds = append(samples[i].Seconds, one.Seconds...)
			}
			c.run.Say("held-out", fmt.Sprintf("m %d", m), false)
		}
		for i := range rows {
			flop := 2 * float64(m) * float64(columns) * float64(o.Key.K)
			rows[i].Held = append(rows[i].Held, HeldPoint{M: m, GFLOPS: flop / samples[i].Fast() / 1e9})
		}
	}
	rankRows(rows)
	return nil
}

// rankRows computes the means over the held-out M and relates the rows to each other.
func rankRows(rows []Row) {
	best, exhaustive := 0.0, 0.0
	for i := range rows {
		r := &rows[i]
		logs, sum := 0.0, 0.0
		for _, h := range r.Held {
			logs += math.Log(h.GFLOPS)
			sum += h.GFLOPS
		}
		n := float64(len(r.Held))
		r.GFLOPS, r.Mean = math.Exp(logs/n), sum/n
		best = max(best, r.GFLOPS)
		if r.Strategy == "exhaustive" {
			exhaustive = r.Mean
		}
	}
	for i := range rows {
		rows[i].OfBest = rows[i].GFLOPS / best
		if exhaustive > 0 {
			rows[i].OfExhaustive = rows[i].Mean / exhaustive
		}
	}
}
