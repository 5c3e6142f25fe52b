package load

import (
	"fmt"
	"strings"
	"time"

	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// Quantities that a sweep varies.
const (
	ByRate = "rate"
	BySLO  = "slo"
)

// Sweeps returns all quantities.
func Sweeps() []string { return []string{ByRate, BySLO} }

// sweepScales are the multiples of the given rate or service level in a sweep.
var sweepScales = []float64{0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8}

// SweepRow is the result of one class on the virtual clock at one multiple of the rate or of the
// service level. Its JSON is stable. Times are in seconds.
type SweepRow struct {
	Policy     string    `json:"policy"`
	Sweep      string    `json:"sweep"` // rate or slo
	Scale      float64   `json:"scale"`
	Rate       float64   `json:"requests_per_minute"` // of this class
	MostTTFT   float64   `json:"slo_ttft"`
	MostTPOT   float64   `json:"slo_tpot"`
	Class      string    `json:"class"`
	Requests   int       `json:"requests"`
	Attainment float64   `json:"slo_attainment"`
	Goodput    float64   `json:"goodput_per_minute"` // requests within the service level
	TTFT       Quantiles `json:"ttft"`
	TPOT       Quantiles `json:"tpot"`
}

// Sweep simulates the load of a policy at multiples of its rate, or compares one simulation with
// multiples of the service level. simulate returns the report at a multiple of the rate.
func Sweep(
	by, policy string, slo replay.SLO, simulate func(scale float64) (*replay.Report, error),
) ([]SweepRow, error) {
	var out []SweepRow
	var report *replay.Report
	for _, scale := range sweepScales {
		level, err := slo, error(nil)
		switch {
		case by == ByRate:
			report, err = simulate(scale)
		case by == BySLO && report == nil:
			report, err = simulate(1)
		case by != BySLO:
			return nil, fmt.Errorf("unknown sweep %q; choose one of %s", by, strings.Join(Sweeps(), ", "))
		}
		if err != nil {
			return nil, err
		}
		if by == BySLO {
			level.TTFT = time.Duration(scale * float64(slo.TTFT))
			level.TPOT = time.Duration(scale * float64(slo.TPOT))
		}
		for _, class := range []sched.Class{sched.Reactive, sched.Proactive} {
			if r := report.Of(class); len(r.Outcomes) > 0 {
				out = append(out, sweepRow(r, report, policy, by, scale, level))
			}
		}
	}
	return out, nil
}

func sweepRow(r, all *replay.Report, policy, by string, scale float64, level replay.SLO) SweepRow {
	row := SweepRow{Policy: policy, Sweep: by, Scale: scale, MostTTFT: level.TTFT.Seconds(),
		MostTPOT: level.TPOT.Seconds(), Class: r.Outcomes[0].Class.String(), Requests: len(r.Outcomes),
		Attainment: r.Attainment(level), TTFT: quantilesOf(r, (*replay.Outcome).TTFT),
		TPOT: quantilesOf(r, (*replay.Outcome).TPOT)}
	// the rate of arrivals, not of service
	span := all.Outcomes[len(all.Outcomes)-1].At - all.Outcomes[0].At
	if span > 0 {
		row.Rate = float64(row.Requests) / span.Minutes()
	}
	if all.Elapsed > 0 {
		row.Goodput = row.Attainment * float64(row.Requests) / all.Elapsed.Minutes()
	}
	return row
}
