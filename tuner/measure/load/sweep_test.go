package load

import (
	"testing"
	"time"

	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// fixedCost is a machine whose forwards take one millisecond and a tenth of one per row.
type fixedCost struct{}

func (fixedCost) Prefill(_, n int, _ bool) time.Duration {
	return time.Millisecond + time.Duration(n)*100*time.Microsecond
}
func (c fixedCost) Decode(context []int) time.Duration { return c.Prefill(0, len(context), true) }
func (fixedCost) Ops() int                             { return 10 }

// TestSweep checks that the part of the requests within the level falls with the rate and rises
// with the level.
func TestSweep(t *testing.T) {
	sets := func(c sched.Class) []replay.Set {
		list, err := replay.SetsOf("mixed", c)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	trace := replay.Poisson(20*time.Second, 1, 96,
		replay.Arrivals{Class: sched.Reactive, Rate: 120, Sets: sets(sched.Reactive)},
		replay.Arrivals{Class: sched.Proactive, Rate: 240, Sets: sets(sched.Proactive)})
	o := replay.Options{Sched: sched.Config{Blocks: 64, MaxRunning: 4, Queue: len(trace)}}
	for _, by := range Sweeps() {
		rows, err := Sweep(by, sched.DefaultPolicy, replay.SLO{TTFT: 20 * time.Millisecond, TPOT: 2 * time.Millisecond},
			func(scale float64) (*replay.Report, error) { return replay.Run(trace.Faster(scale), fixedCost{}, o) })
		if err != nil || len(rows) != 2*len(sweepScales) {
			t.Fatalf("%s: %d rows, %v", by, len(rows), err)
		}
		for class, first := range rows[:2] {
			last := rows[len(rows)-2+class]
			switch {
			case first.Class != last.Class || first.Requests != last.Requests || first.Requests == 0:
				t.Errorf("%s: %+v\n%+v", by, first, last)
			case by == ByRate && (last.TTFT.P90 <= first.TTFT.P90 || last.Attainment >= first.Attainment):
				t.Errorf("at a higher rate: %+v\n%+v", first, last)
			case by == BySLO && (last.TTFT != first.TTFT || last.Attainment <= first.Attainment):
				t.Errorf("at a higher level: %+v\n%+v", first, last)
			}
		}
	}
}
