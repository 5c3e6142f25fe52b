package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandwich/internal/num"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/engine"
	"sandwich/runtime/phase"
	"sandwich/runtime/sched"
	"sandwich/tuner/replay"
)

// XPU runs the evaluation of Agent.xpu in the engine with simulated devices: figures 8 to 10. A
// small model takes the place of the paper's. Decode steps of one sequence on the cores stand for
// those of the paper's model on its iGPU, and all other times are divided by the same factor, those
// of arrivals too. Results are multiplied by it.
type XPU struct {
	Params  XPUParams
	Figures []string   // 8, 9 or 10
	Models  []XPUModel // the paper's
	Seeds   int        // traces of each load
	Seed    uint64
	// Open returns an engine and what closes it; see Lanes.
	Open func(on engine.DeviceOptions, change func(*engine.Service)) (*Engine, func(), error)
	Note func(text string)
}

// XPUModel is a model of the paper.
type XPUModel struct {
	Name   string
	Index  int     // in XPUParams.Models
	Values float64 // elements of its matrices
	Bytes  float64 // of its matrices
}

// PaperRow is a figure of the paper with the figures of both arms, in seconds unless it says
// otherwise. Its JSON is stable.
type PaperRow struct {
	Figure   string  `json:"figure"`
	Model    string  `json:"model"`
	Load     string  `json:"load"`
	What     string  `json:"what"`
	Baseline float64 `json:"baseline,omitempty"` // both phases on one device, class-blind; 0: not run
	Ours     float64 `json:"ours"`               // prefill on the device, decode on the cores, two classes
	Change   float64 `json:"change"`             // percent less than the baseline, or a ratio: see What
	Paper    string  `json:"paper,omitempty"`    // what the paper says about Change or Ours
	Requests int     `json:"requests"`           // reactive ones, or all
	Factor   float64 `json:"time_factor"`        // by which times were divided
	Standin  string  `json:"stand_in"`           // model that ran
	CPU      string  `json:"cpu"`
}

// xpuArm is one way to serve.
type xpuArm struct {
	policy string
	phases []phase.Phase // on the device
}

// The arms of the paper: OpenVINO on the iGPU, and Agent.xpu.
var (
	xpuBaseline = xpuArm{"fcfs", phase.All[:]}
	xpuOurs     = xpuArm{"sandwich", []phase.Phase{phase.Prefill}}
)

// xpuRun runs the loads of one model.
type xpuRun struct {
	*XPU
	model  XPUModel
	device sim.Roofline
	factor float64 // time of the paper's model over that of the stand-in
	rows   []PaperRow
}

// Measure runs the figures for each model.
func (x *XPU) Measure(ctx context.Context) (rows []PaperRow, err error) {
	step, size, err := x.calibrate(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range x.Models {
		r := xpuRun{XPU: x, model: m, factor: m.Bytes / x.Params.Read / step.Seconds()}
		x.Note(fmt.Sprintf("%s: times are divided by %.3g; a trace of %g minutes takes %s", m.Name, r.factor,
			x.Params.Minutes, r.scale(x.during()).Round(time.Second)))
		if r.factor < 1 {
			return nil, fmt.Errorf("a decode step of the stand-in takes %s, longer than that of %s on the paper's "+
				"iGPU; use a smaller model", step, m.Name)
		}
		r.device = sim.Roofline{FLOPs: x.Params.FLOPs * r.factor * size.values / m.Values,
			Bandwidth:   x.Params.Read * r.factor * size.bytes / m.Bytes,
			WeightBytes: size.bytes / size.values}
		if err := r.figures(ctx); err != nil {
			return nil, err
		}
		rows = append(rows, r.rows...)
	}
	return rows, nil
}

// calibrate returns the time of a decode step of one sequence on the cores, and the stand-in's
// size.
func (x *XPU) calibrate(ctx context.Context) (step time.Duration, size weights, err error) {
	const prompt, output = 64, 64
	l := Lanes{Trace: replay.Trace{{Class: sched.Reactive, Prompt: prompt, Output: output}}, Seed: x.Seed, Runs: 1,
		Open: x.Open, Note: x.Note}
	a, err := l.arrangement(ctx, "decode steps on the cores", engine.DeviceOptions{}, nil)
	if err != nil {
		return 0, size, err
	}
	var took []float64
	for _, run := range a.runs {
		for _, f := range run.Forwards {
			if !f.Prefill {
				took = append(took, f.Ended.Sub(f.Began).Seconds())
			}
		}
	}
	if len(took) == 0 {
		return 0, size, errors.New("the engine made no decode step")
	}
	return time.Duration(num.Median(took) * float64(time.Second)), a.model, nil
}

// during returns the period of a trace in the paper's time.
func (x *XPU) during() time.Duration { return time.Duration(x.Params.Minutes * float64(time.Minute)) }

// scale divides a duration by the factor.
func (r *xpuRun) scale(d time.Duration) time.Duration { return time.Duration(float64(d) / r.factor) }

// seconds returns a measured duration in the paper's time.
func (r *xpuRun) seconds(d time.Duration) float64 { return r.factor * d.Seconds() }

// xpuLoad is the load of some traces: requests per minute by class.
type xpuLoad struct {
	set                 string // of proactive requests
	reactive, proactive float64
}

func (l xpuLoad) String() string {
	if l.reactive == 0 {
		return fmt.Sprintf("%s, %g/min", l.set, l.proactive)
	}
	return fmt.Sprintf("reactive %g/min, proactive %g/min", l.reactive, l.proactive)
}

// serve runs the traces of a load under an arm and returns all requests.
func (r *xpuRun) serve(ctx context.Context, arm xpuArm, l xpuLoad) (*replay.Report, error) {
	all := &replay.Report{}
	for seed := range uint64(r.Seeds) {
		var of []replay.Arrivals
		for class, rate := range []float64{sched.Reactive: l.reactive, sched.Proactive: l.proactive} {
			set := "mixed"
			if class == int(sched.Proactive) {
				set = l.set
			}
			sets, err := replay.SetsOf(set, sched.Class(class))
			if err != nil {
				return nil, err
			}
			of = append(of, replay.Arrivals{Class: sched.Class(class), Rate: rate, Sets: sets})
		}
		t := replay.Poisson(r.during(), r.Seed+seed, r.Params.Context, of...).Faster(r.factor)
		if len(t) == 0 {
			return nil, fmt.Errorf("no request arrives within %g minutes at %v; give a longer --minutes",
				r.Params.Minutes, l)
		}
		name := fmt.Sprintf("%s, %v, %s, seed %d", r.model.Name, l, arm.policy, r.Seed+seed)
		report, err := r.trace(ctx, arm, t, name)
		if err != nil {
			return nil, err
		}
		all.Outcomes = append(all.Outcomes, report.Outcomes...)
		all.Elapsed += report.Elapsed
	}
	return all, nil
}

// minBound is the least bound of the time between two steps at which a forward can halt. With a
// smaller one, submissions would take longer than the work in them.
const minBound = time.Millisecond

// trace runs one trace on a new engine with a new device.
func (r *xpuRun) trace(ctx context.Context, arm xpuArm, t replay.Trace, name string) (*replay.Report, error) {
	dev := sim.New(sim.Config{Mode: sim.Timed, Unified: true, KernelDuration: r.device.KernelDuration})
	var lost error
	l := Lanes{Trace: t, Seed: r.Seed, Runs: 1, Open: r.Open, Note: r.Note}
	one, err := l.arrangement(ctx, name, engine.DeviceOptions{Device: dev, Name: "simulated device", Phases: arm.phases,
		Lost: func(err error) { lost = err }}, func(s *engine.Service) {
		s.Policy, s.Aging, s.Bound = arm.policy, r.scale(s.Aging), max(minBound, r.scale(s.Bound))
	})
	if err := errors.Join(err, dev.Close(), lost); err != nil {
		return nil, err
	}
	return one.runs[0].Report, nil
}

// pair serves a load under both arms.
func (r *xpuRun) pair(ctx context.Context, l xpuLoad) (base, ours *replay.Report, err error) {
	if base, err = r.serve(ctx, xpuBaseline, l); err != nil {
		return nil, nil, err
	}
	ours, err = r.serve(ctx, xpuOurs, l)
	return base, ours, err
}

// figures runs the selected figures. Figure 10 uses the runs of figure 9.
func (r *xpuRun) figures(ctx context.Context) error {
	if slices.Contains(r.Figures, "8") {
		for i, set := range r.Params.Sets {
			if err := r.figure8(ctx, set, i); err != nil {
				return err
			}
		}
	}
	if slices.Contains(r.Figures, "9") || slices.Contains(r.Figures, "10") {
		return r.figure9(ctx)
	}
	return nil
}

// add adds a row.
func (r *xpuRun) add(figure, load, what string, base, ours, change float64, paper string, requests int) {
	if slices.Contains(r.Figures, figure) {
		r.rows = append(r.rows, PaperRow{Figure: figure, Model: r.model.Name, Load: load, What: what, Baseline: base,
			Ours: ours, Change: change, Paper: paper, Requests: requests, Factor: r.factor})
	}
}
