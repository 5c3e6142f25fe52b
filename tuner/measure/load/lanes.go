package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandwich/runtime/device/sim"
	"sandwich/runtime/engine"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// Lanes measures how an engine with a simulated device serves two classes: with both phases on one
// lane, with prefill and decode on a lane each, and with prompts on both. The device takes the time
// that a device of the given speed would take and computes nothing; the cores compute.
type Lanes struct {
	Trace  replay.Trace
	Seed   uint64
	Speeds []float64 // of products of many rows, as multiples of the cores'
	// Bandwidth is the rate at which the device reads weights, as a multiple of that of the cores
	// in decode batches.
	Bandwidth float64
	Launch    time.Duration // of a submission
	Copy      float64       // bytes/s between device and cores; 0: infinite
	Runs      int           // of each arrangement
	// Open returns an engine whose forwards run as the options say, and what closes it. change,
	// which may be nil, changes how requests share the engine.
	Open func(on engine.DeviceOptions, change func(*engine.Service)) (*Engine, func(), error)
	Note func(text string)
}

// Arrangements of lanes.
const (
	lanesCores    = "cores"         // both phases on the cores
	lanesShared   = "shared"        // both phases on the device, on one lane
	lanesSeparate = "disaggregated" // prefill on the device and decode on the cores, at the same time
	lanesDivided  = "divided"       // the same, but reactive prompts run on the device and the cores together
)

// LaneRow is the result of one arrangement, over all its runs. Its JSON is stable. Times are in
// seconds.
type LaneRow struct {
	Lanes string  `json:"lanes"`           // cores, shared, disaggregated or divided
	Speed float64 `json:"speed,omitempty"` // of the device

	TTFT Quantiles `json:"reactive_ttft"`
	TPOT Quantiles `json:"reactive_tpot"`
	// Proactive has the tokens of prompts and answers per second of proactive requests, from the
	// first arrival of a run to the last proactive token.
	Proactive float64 `json:"proactive_tokens_per_second"`
	Reactive  int     `json:"reactive_requests"`
	Halts     int64   `json:"halts"`
	Runs      int     `json:"runs"`
	Model     string  `json:"model"`
	CPU       string  `json:"cpu"`
}

// Measure runs the arrivals on the cores, which gives the speed of the cores, and then with devices
// of each speed under each arrangement.
func (l *Lanes) Measure(ctx context.Context) (rows []LaneRow, err error) {
	one, err := l.arrangement(ctx, lanesCores, engine.DeviceOptions{}, nil)
	if err != nil {
		return nil, err
	}
	rows = append(rows, one.row())
	cores, err := coresRoofline(one)
	if err != nil {
		return nil, err
	}
	prefill := []phase.Phase{phase.Prefill}
	for _, speed := range l.Speeds {
		r := cores
		r.FLOPs, r.Bandwidth = r.FLOPs*speed, r.Bandwidth*l.Bandwidth
		for _, a := range []struct {
			name   string
			phases []phase.Phase
		}{{lanesShared, phase.All[:]}, {lanesSeparate, prefill}, {lanesDivided, prefill}} {
			dev := sim.New(sim.Config{Mode: sim.Timed, Launch: l.Launch, CopyBytesPerS: l.Copy,
				KernelDuration: r.KernelDuration})
			var lost error
			one, err := l.arrangement(ctx, a.name, engine.DeviceOptions{Device: dev, Name: "simulated device",
				Phases: a.phases, Divide: a.name == lanesDivided, Lost: func(err error) { lost = err }}, nil)
			if err := errors.Join(err, dev.Close(), lost); err != nil {
				return nil, err
			}
			row := one.row()
			row.Speed = speed
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// weights is the size of the matrices of a model.
type weights struct{ values, bytes float64 }

// arrangement is one way to run the arrivals, with its runs.
type arrangement struct {
	name  string
	model weights
	runs  []*Run
	after engine.Stats // all runs
}

// arrangement runs the arrivals on an engine, several times.
func (l *Lanes) arrangement(ctx context.Context, name string, on engine.DeviceOptions, change func(*engine.Service)) (
	*arrangement, error,
) {
	e, closed, err := l.Open(on, change)
	if err != nil {
		return nil, err
	}
	defer closed()
	r := e.engine.Runner()
	one := &arrangement{name: name}
	for i := range r.Model.Weights {
		one.model.values += float64(r.Model.Weights[i].N) * float64(r.Model.Weights[i].K)
	}
	one.model.bytes = float64(r.Memory().Weights)
	for i := range l.Runs {
		l.Note(fmt.Sprintf("%s, run %d of %d", name, i+1, l.Runs))
		run, err := Offer(ctx, l.Trace, l.Seed+uint64(i), e)
		if err != nil {
			return nil, err
		}
		one.runs = append(one.runs, run)
	}
	one.after = e.stats()
	return one, nil
}

// reactive returns the reactive requests of all runs.
func (a *arrangement) reactive() *replay.Report {
	var all []replay.Outcome
	for _, run := range a.runs {
		all = append(all, run.Outcomes...)
	}
	return (&replay.Report{Outcomes: all}).Of(sched.Reactive)
}

// proactive returns the mean rate of proactive tokens of the runs.
func (a *arrangement) proactive() (sum float64) {
	for _, run := range a.runs {
		sum += rate(run, sched.Proactive) / float64(len(a.runs))
	}
	return sum
}

// stops returns the halts and quanta of all runs.
func (a *arrangement) stops() (halts, quanta int64) {
	for _, run := range a.runs {
		halts, quanta = halts+run.Sched.Stops, quanta+run.Sched.Quanta
	}
	return halts, quanta
}

func (a *arrangement) row() LaneRow {
	reactive := a.reactive()
	halts, _ := a.stops()
	return LaneRow{Lanes: a.name, Runs: len(a.runs), Halts: halts, Proactive: a.proactive(),
		Reactive: len(reactive.Outcomes), TTFT: quantilesOf(reactive, (*replay.Outcome).TTFT),
		TPOT: quantilesOf(reactive, (*replay.Outcome).TPOT)}
}

// rate returns the tokens of prompts and answers per second of a class.
func rate(run *Run, class sched.Class) float64 {
	tokens, end := 0, time.Duration(0)
	for i := range run.Outcomes {
		if o := &run.Outcomes[i]; o.Class == class && o.Finished() {
			tokens, end = tokens+o.Prompt+o.Tokens, max(end, o.End)
		}
	}
	if d := end - run.Outcomes[0].At; d > 0 {
		return float64(tokens) / d.Seconds()
	}
	return 0
}

// coresRoofline returns the ceilings that the forwards of runs on the cores reached: arithmetic by
// the prefills, bandwidth by the decode batches.
func coresRoofline(a *arrangement) (r sim.Roofline, err error) {
	var took [phase.Count]time.Duration
	var rows, batches int
	model := a.model
	for _, run := range a.runs {
		for i := range run.Forwards {
			switch f := &run.Forwards[i]; {
			case f.Prefill:
				took[phase.Prefill] += f.Ended.Sub(f.Began)
				if f.Whole || !f.Halted {
					rows += f.Load.Rows
				}
			default:
				took[phase.Decode] += f.Ended.Sub(f.Began)
				batches++
			}
		}
	}
	if rows == 0 || batches == 0 || took[phase.Prefill] <= 0 || took[phase.Decode] <= 0 {
		return r, errors.New("the arrivals have no prompt or no answer to measure the cores with; raise --duration")
	}
	return sim.Roofline{FLOPs: 2 * model.values * float64(rows) / took[phase.Prefill].Seconds(),
		Bandwidth:   model.bytes * float64(batches) / took[phase.Decode].Seconds(),
		WeightBytes: model.bytes / model.values, Other: time.Microsecond}, nil
}
