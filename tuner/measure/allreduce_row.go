package measure

import (
	"context"

	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/topotree"
	"sandwich/tuner/measure/spread"
)

// AllReduceRow is one way to add up partial results of one size. Its JSON is stable.
type AllReduceRow struct {
	Way       string  `json:"way"` // shifted, barrier or blocking
	Rows      int     `json:"rows"`
	Width     int     `json:"width"`
	Ranks     int     `json:"ranks"`
	Threads   int     `json:"threads"`
	PUs       int     `json:"pus"`   // distinct PUs
	Bytes     int64   `json:"bytes"` // partials read and sum written
	Median    float64 `json:"median_s"`
	Min       float64 `json:"min_s"`
	P10       float64 `json:"p10_s"`
	P90       float64 `json:"p90_s"`
	Reps      int     `json:"reps"`
	Rate      float64 `json:"bytes_per_second"` // at the median
	Ceiling   float64 `json:"ceiling_bytes_per_second,omitempty"`
	CeilingOf string  `json:"ceiling,omitempty"`
	CPU       string  `json:"cpu"`
}

// AllReduce times the ways to add up the partial results of ranks interleaved, one row each, after
// it has compared every sum with a plain loop. `sandwich bench allreduce` prints the rows. The
// error is mem.ErrNoMemory if the matrices are too large.
func AllReduce(ctx context.Context, host *profiles.Profile, o AllReduceOptions) ([]AllReduceRow, error) {
	b := reduceBench{AllReduceOptions: o}
	samples, err := b.run(ctx)
	if err != nil {
		return nil, err
	}
	unique := topotree.NewCPUSet(o.PUs...)
	bytes := 4 * int64(o.Rows) * int64(o.Width) * int64(o.Ranks+1)
	ceiling, ceilingOf := reduceCeiling(host, bytes, unique)
	var rows []AllReduceRow
	for arm, seconds := range samples {
		s := spread.Summarize(seconds)
		rows = append(rows, AllReduceRow{Way: reduceArms[arm], Rows: o.Rows, Width: o.Width, Ranks: o.Ranks,
			Threads: len(o.PUs), PUs: unique.Count(), Bytes: bytes, Median: s.Median, Min: s.Min, P10: s.P10,
			P90: s.P90, Reps: len(seconds), Rate: float64(bytes) / s.Median, Ceiling: ceiling,
			CeilingOf: ceilingOf, CPU: host.Host.CPUModel})
	}
	return rows, nil
}

// reduceCeiling returns the bandwidth between the ranks: that of the L3, or of memory if there is
// no L3 or it does not hold the matrices. Reads from a worker's own cache may exceed it.
func reduceCeiling(host *profiles.Profile, bytes int64, pus topotree.CPUSet) (float64, string) {
	level := "memory"
	for _, o := range host.Machine.Objects {
		if o.Kind == topotree.KindL3 && bytes <= o.Bytes/2 {
			level = "l3"
		}
	}
	a := roofline.NewMachine(host).Read(pus, level)
	if !a.Known() {
		return 0, ""
	}
	return a.Value, level + " " + profiles.FormatRate(a.Value, "B/s")
}

// RanksUpTo returns powers of two up to the number of PUs, and that number; at least 2, because one
// rank has nothing to add.
func RanksUpTo(pus int) []int {
	out := []int{2}
	for r := 4; r <= pus; r *= 2 {
		out = append(out, r)
	}
	if last := out[len(out)-1]; pus > last {
		out = append(out, pus)
	}
	return out
}

// ReduceWorkers returns the PUs of the workers: all of them or the number asked for, starting again
// from the first PU if there are more workers than PUs. Each rank has a worker.
func ReduceWorkers(pus []int, ranks, asked int) []int {
	n := max(ranks, asked)
	if asked == 0 {
		n = max(ranks, len(pus))
	}
	out := make([]int, n)
	for i := range out {
		out[i] = pus[i%len(pus)]
	}
	return out
}
