package load

import (
	"math"
	"time"

	"sandwich/runtime/energy"
	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// Row is the result of one class in one run. Its JSON is stable. Times are in seconds.
type Row struct {
	Policy     string    `json:"policy"`
	Clock      string    `json:"clock"` // wall or virtual
	Class      string    `json:"class"`
	Requests   int       `json:"requests"`
	Finished   int       `json:"finished"`
	Pending    Quantiles `json:"pending"` // until the first forward; 0 if unknown
	TTFT       Quantiles `json:"ttft"`
	TPOT       Quantiles `json:"tpot"`
	Latency    Quantiles `json:"latency"`
	Normalized Quantiles `json:"normalized_latency"` // divided by the tokens of prompt and answer
	Attainment float64   `json:"slo_attainment"`

	// The following figures are of the whole run.
	Tokens      float64 `json:"tokens_per_second"`
	Utilization float64 `json:"utilization,omitempty"` // fraction of the time in which forwards ran
	Halts       int64   `json:"halts"`
	Quanta      int64   `json:"quanta"`
	Aged        int64   `json:"aged"`
	Preempted   int64   `json:"preempted"`
	Joules      float64 `json:"joules_per_token,omitempty"`
	JoulesOf    string  `json:"joules_of,omitempty"`           // sources that Joules adds
	NoJoules    string  `json:"energy_not_readable,omitempty"` // why Joules is 0
	Goodput     float64 `json:"goodput_per_minute,omitempty"`
	Model       string  `json:"model,omitempty"`
	CPU         string  `json:"cpu,omitempty"`

	// Pace has the 10th and 90th percentile of the pace of the machine, weighted by time, that a
	// simulated run follows. Even is the result at an even pace.
	Pace [2]float64 `json:"pace,omitzero"`
	Even Even       `json:"even_pace,omitzero"`
}

// Even is the result of a class on a machine with an even pace.
type Even struct {
	TTFT Quantiles `json:"ttft"`
	TPOT Quantiles `json:"tpot"`
}

// Quantiles has the mean of a time and its quantiles, in seconds.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	// Half is half of the 95 % confidence interval of the mean, for independent requests.
	Half float64 `json:"mean_half_interval,omitempty"`
}

// All returns the figures in the order of the fields.
func (q Quantiles) All() [4]float64 { return [4]float64{q.Mean, q.P50, q.P90, q.P99} }

// Rows returns the rows of a run, one for each class that occurs.
func Rows(run *Run, slo replay.SLO) (rows []Row) {
	tokens, clock := 0, "wall"
	for i := range run.Outcomes {
		tokens += run.Outcomes[i].Tokens
	}
	if run.Simulated {
		clock = "virtual"
	}
	for _, class := range []sched.Class{sched.Reactive, sched.Proactive} {
		r := run.Of(class)
		if len(r.Outcomes) == 0 {
			continue
		}
		of := func(what func(*replay.Outcome) time.Duration) Quantiles { return quantilesOf(r, what) }
		row := Row{Policy: run.Policy, Clock: clock, Class: class.String(), Requests: len(r.Outcomes),
			Finished: r.Finished(), Pending: of((*replay.Outcome).Pending), TTFT: of((*replay.Outcome).TTFT),
			TPOT:    of((*replay.Outcome).TPOT),
			Latency: of((*replay.Outcome).Latency), Normalized: of((*replay.Outcome).Normalized),
			Attainment: r.Attainment(slo), Tokens: run.Throughput(),
			Halts: run.Sched.Stops, Quanta: run.Sched.Quanta, Aged: run.Sched.Promotions,
			Preempted: run.Sched.Preemptions, Goodput: run.Goodput, Model: run.Model, CPU: run.CPU}
		if run.Even != nil {
			even := run.Even.Of(class)
			row.Pace[0], row.Pace[1] = run.Pace.Range()
			row.Even = Even{quantilesOf(even, (*replay.Outcome).TTFT), quantilesOf(even, (*replay.Outcome).TPOT)}
		}
		if run.Elapsed > 0 {
			row.Utilization = run.Busy.Seconds() / run.Elapsed.Seconds()
		}
		row.setEnergy(run.Energy, tokens)
		rows = append(rows, row)
	}
	return rows
}

// setEnergy sets the energy per token of the run, or why it is not known.
func (r *Row) setEnergy(used energy.Reading, tokens int) {
	if used == nil || tokens == 0 {
		return
	}
	joules, err := used.Total()
	if err != nil {
		r.NoJoules = err.Error()
		return
	}
	r.Joules, r.JoulesOf = joules/float64(tokens), used.Summed()
}

func quantilesOf(r *replay.Report, what func(*replay.Outcome) time.Duration) Quantiles {
	q := Quantiles{Mean: r.Mean(what).Seconds(), P50: r.Quantile(0.5, what).Seconds(),
		P90: r.Quantile(0.9, what).Seconds(), P99: r.Quantile(0.99, what).Seconds()}
	sum, n := 0.0, 0
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.Finished() {
			d := what(o).Seconds() - q.Mean
			sum, n = sum+d*d, n+1
		}
	}
	if n > 1 {
		q.Half = 1.96 * math.Sqrt(sum/float64(n-1)/float64(n))
	}
	return q
}
